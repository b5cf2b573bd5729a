"""Tables, models, verdicts and plots from result files; needs no compiler and no extension.

Which module for which question:

what was measured
    `analysis.load`: ``frame`` for a table of any results, ``load`` for all of one run;
    `analysis.report` for estimates and verdicts, `analysis.plot` for pictures.
did it become faster
    `analysis.compare`.
does a remedy help
    `analysis.stats` holds the one decision rule, `analysis.verdict` applies it to several remedies.
which curve describes a sweep, and what will it do beyond
    `analysis.measured` finds the curves in results; `analysis.fit` fits one model,
    `analysis.selection` chooses, `analysis.models` lists them.
who slows whom, and how often steps stall
    `analysis.interference`, `analysis.stalls`.
what would a pipeline do
    `analysis.simulate`; `analysis.ranking` for variants; `analysis.prover` holds the model against
    published tables, `analysis.prover_predictions` goes on from there.
bandwidth at a given latency; TLB reach; bus traffic
    `analysis.latency`, `analysis.tlb`, `analysis.traffic`: measured points and arithmetic.
which phases of a pipeline overlap, and what that does
    `analysis.timeline`: from its log.
two sets of samples that cannot be paired
    `analysis.significance`.
did anything change while measuring
    `analysis.series`.
"""
