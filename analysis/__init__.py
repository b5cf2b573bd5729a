"""Tables, models, verdicts and plots from result files; needs no compiler and no extension."""
