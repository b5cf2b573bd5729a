"""What the log of a pipeline says about overlap: which phases ran together, and what that did.

Which module for which question:

what a log holds, and what was wrong with it
    `analysis.timeline.reading`: ``read_log`` gives runs, each phase as spans, and faults by line.
everything at once
    `analysis.timeline.summary`: ``summarise`` makes the report that ``bench timeline`` prints.
which phases run together
    `analysis.timeline.beside`.
does a phase take longer beside another
    `analysis.timeline.effects`.
are the workers busy, and when are they not
    `analysis.timeline.utilisation`.
how fast is it without fill and drain
    `analysis.timeline.steady`.
can these figures all be true
    `analysis.timeline.littles_law`.

A new event is one row of `analysis.timeline.events`.
"""
