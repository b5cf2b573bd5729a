"""What makes a report display in a notebook as the page shows it."""


class Displayed:
    """A report that notebooks display."""

    def _repr_html_(self) -> str:
        from analysis.page.notebook import report_html

        return report_html(self)
