"""Plots of analysis results; matplotlib is imported when one is drawn, never before.

Every function takes ``ax`` and returns it, sets no global style and shows nothing.
"""

from typing import TYPE_CHECKING

import numpy as np

from analysis.fitted import Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes  # the type in signatures elsewhere


def new_axes(ax: "Axes | None") -> "Axes":
    """Return ``ax``, or fresh axes where there are none."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


def plot_fit(fit: Fit, ax: "Axes | None" = None) -> "Axes":
    """Draw the measured points, the fitted curve and the 95 % band of the curve."""
    axes = new_axes(ax)
    x = np.linspace(fit.x.min(), fit.x.max(), 200)
    low, high = fit.predict_band(x)
    (line,) = axes.plot(x, fit.predict(x), label=fit.model.NAME)
    axes.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    if fit.groups is not None:
        for at, group in zip(fit.x, fit.groups, strict=True):
            axes.plot(np.full(group.size, at), group, ".", color="0.7", markersize=3)
    axes.plot(fit.x, fit.y, "o", color=line.get_color(), label="measured")
    axes.legend()
    return axes
