"""One module a command; the only place in ``bench`` that prints."""
