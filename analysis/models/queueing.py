"""Queues with closed forms: workers that share a server, and stations in a ring."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.intervals import Floats, finite

NAME = "queueing"
SUBJECT = "queueing"
SUMMARY = "mean value analysis, machine repairman, M/M/c, M/M/1/K"
WHEN = "service times are known and exponential is near enough; predicts throughput and waiting"
SOURCE = "E. D. Lazowska et al., Quantitative System Performance (1984); L. Kleinrock (1975)"


@dataclass(frozen=True)
class ClosedNetwork:
    """N customers that circulate among queueing stations, with thinking time between rounds."""

    throughput: float
    """Rounds per unit of time."""
    residence: Floats
    """Time per visit at each station, waiting included."""
    queue: Floats
    """Mean number of customers at each station."""
    utilisation: Floats
    station_throughput: Floats


def mean_value_analysis(
    service: ArrayLike, visits: ArrayLike, customers: int, think: float = 0.0
) -> ClosedNetwork:
    """Solve a closed product-form network exactly, one customer after the other.

    Parameters
    ----------
    service : array_like, shape (m,)
        Mean service time per visit at each single-server station.
    visits : array_like, shape (m,)
        Mean visits per round.
    customers : int
    think : float
        Delay per round outside all stations.

    Raises
    ------
    ValueError
        Unequal lengths, negative times or fewer than one customer.

    References
    ----------
    M. Reiser, S. S. Lavenberg, JACM 27 (1980) 313-322.
    """
    s, v = finite("service", service), finite("visits", visits)
    if s.size != v.size:
        raise ValueError(f"service and visits need equal lengths, not {s.size} and {v.size}")
    if customers < 1 or think < 0 or s.min() < 0 or v.min() < 0:
        raise ValueError("times and visits must be 0 or more, customers 1 or more")
    queue = np.zeros_like(s)
    residence, throughput = s, 0.0
    for n in range(1, customers + 1):
        residence = s * (1 + queue)
        throughput = n / (think + float(v @ residence))
        queue = throughput * v * residence
    return ClosedNetwork(throughput, residence, queue, throughput * v * s, throughput * v)


@dataclass(frozen=True)
class Queue:
    """Steady state of one queue."""

    throughput: float
    in_system: float
    """Mean number waiting or served."""
    waiting: float
    """Mean number waiting."""
    response: float
    """Mean time from arrival to departure."""
    p_empty: float
    utilisation: float
    """Of one server."""


def machine_repairman(rate: float, service_rate: float, machines: int) -> Queue:
    """Solve M/M/1/K/K: ``machines`` workers, each asking the server at ``rate`` while outside.

    With one worker's time outside Z = 1/rate and service S = 1/service_rate. If all asked at once
    instead of at random, throughput would be n/(Z + n S): Amdahl's law with alpha = S/(S+Z).
    """
    _positive(rate=rate, service_rate=service_rate, machines=machines)
    k = np.arange(machines)
    weights = np.concatenate([[1.0], np.cumprod((machines - k) * rate / service_rate)])
    return _finite_queue(weights / weights.sum(), service_rate)


def mm1k(rate: float, service_rate: float, places: int) -> Queue:
    """Solve M/M/1/K: arrivals at ``rate``, lost when all ``places`` are taken."""
    _positive(rate=rate, service_rate=service_rate, places=places)
    weights = (rate / service_rate) ** np.arange(places + 1)
    return _finite_queue(weights / weights.sum(), service_rate)


def mmc(rate: float, service_rate: float, servers: int) -> Queue:
    """Solve M/M/c: arrivals at ``rate``, ``servers`` equal servers, one queue.

    Raises
    ------
    ValueError
        The servers cannot keep up.
    """
    _positive(rate=rate, service_rate=service_rate, servers=servers)
    load = rate / service_rate
    use = load / servers
    if use >= 1:
        raise ValueError(f"{servers} servers of rate {service_rate:g} cannot keep up with {rate:g}")
    terms = [load**k / math.factorial(k) for k in range(servers)]
    tail = load**servers / math.factorial(servers) / (1 - use)
    p_empty = 1 / (sum(terms) + tail)
    waiting = p_empty * tail * use / (1 - use)
    return Queue(rate, waiting + load, waiting, waiting / rate + 1 / service_rate, p_empty, use)


def idle_time(workers: float, throughput: float, response: float) -> float:
    """Time a worker spends between jobs, from what a log holds: N/X - R.

    Much more than 0 means starved from upstream, about 0 means saturated. No assumption about
    distributions is needed.
    """
    _positive(workers=workers, throughput=throughput, response=response)
    return workers / throughput - response


def _finite_queue(p: Floats, service_rate: float) -> Queue:
    """Steady state from the probabilities of 0, 1, 2, … in the system."""
    throughput = float(service_rate * (1 - p[0]))
    in_system = float(p @ np.arange(p.size))
    busy = 1 - float(p[0])
    return Queue(throughput, in_system, in_system - busy, in_system / throughput, float(p[0]), busy)


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be finite and over 0, not {value}")
