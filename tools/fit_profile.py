#!/usr/bin/env python3
"""Fits what a calibration cannot see to the pairs that it measured, and writes the profile.

A calibration measures how fast an LC kernel is on some SMs while a BE kernel runs on the others
(the 'pairs' of the profile's `learned` text), not why. The simulated device wants the why: demands
on DRAM and L2, and outstanding requests (src/sim/README.md, "Interference"). This script searches
those that reproduce the measured pairs under the same equations:

  LC kernel: a factor on its nodes' demands on DRAM, none above 1 then; memory_parallelism
  BE kernel: demand.l2, and demand.dram, which is its results where it computes. If its speed does
             not follow its SMs, memory bounds it: demand.dram is 1, and memory_parallelism is
             searched

memory_parallelism has no unit: the memory-bound neighbour that the profile gives the most keeps its
value. The search is a pattern search from fixed starts: the same profile gives the same answer.

Before that, workers that are faster than the original grid get their overhead back where it is 0:
calibrations once wrote none below 0, so that BE alone, which runs as grids, would be too fast in
the simulation. The block task is set to that of the measured solo duration, and worker_overhead to
what workers need of it, below 0. An overhead that is not 0 was measured and stays.

A calibration runs an LC kernel on a partition again and again; queries that come one by one start on
SMs that BE has just left. `--in-place KERNEL=FACTOR` multiplies a kernel's speeds on partitions by
what that costs it, found on one row of a colocation; the other rows remain predictions.

A catalogue's pairs are too many kinds for one set of demands: `--lc` names the LC kernels that count.

  tools/fit_profile.py CALIBRATED --name h200 --lc chain1,decode16 --in-place decode16=0.99 --out profiles/h200.json
"""

import argparse
import copy
import json
import math
import sys
import time

# src/sim/physics/tuning.h, kL2Contention.
L2_CONTENTION = 0.6
# A kernel whose speed on half of the SMs is more than half by this factor is bound by memory, not by SMs.
MEMORY_BOUND = 1.05
# Solo durations that differ by less than this share agree.
OVERHEAD_LEAST = 0.005
# The last block tasks of a task end this many spreads late (Engine::PoolIsEmpty, 17 cells).
TAIL_SPREADS = 1.9
WRITER_PARALLELISM = 1.0
PARALLELISM_MOST = 10.0
STARTS_L2 = (0.1, 0.4, 0.8)
ROUNDS = 100
# Without a terminal, progress is a line at most this often.
PLAIN_SECONDS = 5


class Progress:
    """Rounds done and about how much time remains, on stderr: one line of a terminal, else sparse lines."""

    def __init__(self, steps, quiet=False, out=sys.stderr, clock=time.monotonic):
        self.steps, self.quiet, self.out, self.clock = steps, quiet, out, clock
        self.live = out.isatty()
        self.done = 0
        self.start = self.printed = clock()

    def step(self):
        self.done += 1
        now = self.clock()
        if self.quiet or now - self.printed < (0.1 if self.live else PLAIN_SECONDS):
            return
        self.printed = now
        elapsed = now - self.start
        left = elapsed / self.done * max(0, self.steps - self.done)
        text = f"{self.done} of {self.steps} rounds done, {elapsed:.0f} s elapsed, about {left:.0f} s remaining"
        self.out.write(f"\r\033[K{text}" if self.live else f"gpushare: {text}\n")
        self.out.flush()

    def finish(self):
        if self.live and not self.quiet:
            self.out.write("\r\033[K")
            self.out.flush()


def speed_on(kernel, sms, device_sms):
    """As PreparedKernel::SpeedOn."""
    low_sms, low_speed = 0, 0.0
    for point in kernel["simulation"].get("speed", []) + [{"sms": device_sms, "speed": 1.0}]:
        if sms == point["sms"]:
            return point["speed"]
        if sms < point["sms"]:
            share = (sms - low_sms) / (point["sms"] - low_sms)
            return low_speed + (point["speed"] - low_speed) * share
        low_sms, low_speed = point["sms"], point["speed"]
    return low_speed


def mean_demand(kernel, factor):
    """DRAM and L2 demand of a graph that runs as one segment, as BuildChain averages it."""
    record = kernel["simulation"]
    nodes = record.get("nodes") or [{"duration_ns": 1, "repeat": 1, "demand": record["demand"]}]
    gap = record.get("node_gap_ns", 0) if record.get("nodes") else 0
    time = -gap
    dram = l2 = 0.0
    for node in nodes:
        busy = node["duration_ns"] * node.get("repeat", 1)
        time += busy + gap * node.get("repeat", 1)
        demand = node.get("demand") or {}
        if not any(demand.values()):
            demand = record["demand"]
        dram += busy * min(1.0, demand.get("dram", 0) * factor)
        l2 += busy * demand.get("l2", 0)
    return dram / time, l2 / time


def demands_of(kernel):
    """The demands of a kernel and of its nodes, to be changed in place."""
    record = kernel["simulation"]
    return [record["demand"]] + [node["demand"] for node in record.get("nodes", [])]


def granted(ours, theirs, our_weight, their_weight):
    """Weighted max-min share of one unit of bandwidth, as ShareDram for two."""
    if ours + theirs <= 1:
        return ours
    share = our_weight / (our_weight + their_weight)
    if ours <= share:
        return ours
    return max(share, 1 - theirs)


class Fit:
    """The pairs of one profile, and a parameter vector over them."""

    def __init__(self, profile, only_lc=()):
        self.device_sms = profile["device"]["sm_count"]
        self.kernels = {kernel["name"]: kernel for kernel in profile["kernels"]}
        pairs = json.loads(profile["learned"]).get("pairs", [])
        self.pairs = [(p["kernel"], p["neighbour"], p["sms"], p["speed"]["mean"]) for p in pairs
                      if not only_lc or p["kernel"] in only_lc]
        self.lc = sorted({pair[0] for pair in self.pairs})
        self.be = sorted({pair[1] for pair in self.pairs})
        half = self.device_sms // 2
        linear = half / self.device_sms
        self.bound = [name for name in self.be if
                      speed_on(self.kernels[name], half, self.device_sms) > MEMORY_BOUND * linear]
        self.demands = {}
        self.reference = max(self.bound, default=None, key=lambda name: self.kernels[name][
            "simulation"].get("memory_parallelism", 0))
        self.speeds = {
            (name, sms): speed_on(self.kernels[name], sms, self.device_sms)
            for lc, be, lc_sms, _ in self.pairs
            for name, sms in ((lc, lc_sms), (be, self.device_sms - lc_sms))
        }

    def parallelism(self, name):
        """The kernel's outstanding requests. Writes wait for nobody, so a kernel without a value gets its bandwidth."""
        return self.kernels[name]["simulation"].get("memory_parallelism", 0) or WRITER_PARALLELISM

    def mean_demand(self, name, factor):
        key = (name, factor)
        if key not in self.demands:
            self.demands[key] = mean_demand(self.kernels[name], factor)
        return self.demands[key]

    def dram(self, values, name):
        return values.get((name, "dram"), 1.0)

    def start(self, l2):
        values = {}
        for name in self.lc:
            values[name, "factor"] = 1.0
            values[name, "parallelism"] = 1.0
        for name in self.be:
            values[name, "l2"] = l2
            if name not in self.bound:
                values[name, "dram"] = 0.02
            elif name != self.reference:
                values[name, "parallelism"] = 1.0
        return values

    def limit(self, key):
        name, what = key
        if what == "parallelism":
            return PARALLELISM_MOST
        if what == "factor":
            most = max(demand.get("dram", 0) for demand in demands_of(self.kernels[name]))
            return 1 / max(1e-9, most)
        return 1.0

    def predict(self, values, lc, be, sms):
        """Factor on the LC kernel's speed, as ShareMemory."""
        other = self.device_sms - sms
        our_speed = self.speeds[lc, sms]
        their_speed = self.speeds[be, other]
        dram, l2 = self.mean_demand(lc, values[lc, "factor"])
        their_dram = self.dram(values, be)
        their_l2 = values[be, "l2"] * their_speed
        our_l2 = l2 * our_speed
        ours = 1 / (1 + L2_CONTENTION * dram * their_l2)
        theirs = 1 / (1 + L2_CONTENTION * their_dram * our_l2)
        if our_l2 + their_l2 > 1:
            ours = min(ours, 1 / (our_l2 + their_l2))
            theirs = min(theirs, 1 / (our_l2 + their_l2))
        asked = dram * our_speed
        if asked <= 0:
            return ours
        parallelism = values.get((be, "parallelism"), self.parallelism(be))
        got = granted(asked * ours, their_dram * their_speed * theirs,
                      max(1e-9, sms * values[lc, "parallelism"]),
                      max(1e-9, other * parallelism))
        return min(ours, got / asked)

    def error(self, values):
        return sum((self.predict(values, lc, be, sms) - speed)**2
                   for lc, be, sms, speed in self.pairs)

    def descend(self, values, progress):
        best = self.error(values)
        steps = {key: 0.25 for key in values}
        for _ in range(ROUNDS):
            for key in sorted(values):
                before = values[key]
                for sign in (1, -1):
                    values[key] = min(max(before + sign * steps[key], 0.0), self.limit(key))
                    error = self.error(values)
                    if error < best:
                        best = error
                        steps[key] *= 1.3
                        break
                    values[key] = before
                else:
                    steps[key] = max(steps[key] * 0.6, 1e-4)
            progress.step()
        return best, values

    def solve(self, quiet=True):
        progress = Progress(ROUNDS * len(STARTS_L2), quiet)
        tries = [self.descend(self.start(l2), progress) for l2 in STARTS_L2]
        progress.finish()
        return min(tries, key=lambda one: one[0])[1]


def restore_grids(profile):
    """Block task of the original grid where the calibration cut the overhead of workers at 0."""
    learned = {one["name"]: one for one in json.loads(profile["learned"])["kernels"]}
    sms = profile["device"]["sm_count"]
    for kernel in profile["kernels"]:
        solo = learned.get(kernel["name"], {}).get("solo", {})
        record = kernel.get("simulation", {})
        if not kernel.get("evictable") or record.get("worker_overhead", 0) != 0:
            continue
        if solo.get("samples", 0) < 1 or solo.get("mean_x", 0) <= 0:
            continue
        rounds = math.ceil(solo["mean_x"] / (sms * kernel["workers_per_sm_max"]))
        grid = solo["mean_y_ns"] / (rounds + TAIL_SPREADS * record.get("block_task_spread", 0))
        overhead = record["block_task_ns"] / grid - 1
        if -0.2 < overhead < -OVERHEAD_LEAST:
            record["block_task_ns"] = round(grid)
            record["worker_overhead"] = round(overhead, 4)


def slow_partitions(profile, name, factor):
    kernel = next(kernel for kernel in profile["kernels"] if kernel["name"] == name)
    for point in kernel["simulation"]["speed"]:
        if point["sms"] < profile["device"]["sm_count"]:
            point["speed"] *= factor


def write_back(profile, fit, values):
    out = copy.deepcopy(profile)
    restore_grids(out)
    for kernel in out["kernels"]:
        name = kernel["name"]
        record = kernel["simulation"] if "simulation" in kernel else {}
        if name in fit.lc:
            factor = values[name, "factor"]
            for demand in demands_of(kernel):
                demand["dram"] = round(min(1.0, demand.get("dram", 0) * factor), 3)
        if name in fit.be:
            record["demand"]["l2"] = round(values[name, "l2"], 4)
        if name in fit.be:
            record["demand"]["dram"] = round(fit.dram(values, name), 4)
            record["memory_parallelism"] = round(fit.parallelism(name), 3)
        if (name, "parallelism") in values:
            record["memory_parallelism"] = round(values[name, "parallelism"], 3)
    return out


def table(fit, values):
    lines = []
    squares = 0.0
    for lc, be, sms, speed in fit.pairs:
        predicted = fit.predict(values, lc, be, sms)
        squares += (predicted - speed)**2
        miss = predicted - speed
        lines.append(f"{lc:10} {be:22} {sms:4d} {speed:8.3f} {predicted:9.3f} {miss:+7.3f}")
    rms = (squares / len(fit.pairs))**0.5
    return "LC         BE                      SMs measured predicted    miss\n" + "\n".join(
        lines) + f"\n\n{len(fit.pairs)} pairs, root mean square {rms:.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile", help="a profile that `gpushare calibrate` wrote on a GPU")
    parser.add_argument("--out", help="the fitted profile; without it nothing is written")
    parser.add_argument("--name", help="the fitted profile's device name")
    parser.add_argument("--lc", default="", metavar="A,B",
                        help="fit to the pairs of these LC kernels alone; without it, of all")
    parser.add_argument("--in-place", action="append", default=[], metavar="KERNEL=FACTOR",
                        help="speeds on partitions, queries that come one by one over calibrated")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    arguments = parser.parse_args()
    with open(arguments.profile, encoding="utf-8") as file:
        profile = json.load(file)
    fit = Fit(profile, [name for name in arguments.lc.split(",") if name])
    if not fit.pairs:
        print(f"{arguments.profile} holds no measured pairs.", file=sys.stderr)
        return 2
    values = fit.solve(arguments.quiet)
    print(table(fit, values))
    for (name, what), value in sorted(values.items()):
        print(f"{name}.{what} = {value:.4f}")
    for text in arguments.in_place:
        name, factor = text.split("=")
        slow_partitions(profile, name, float(factor))
    if arguments.name:
        profile["device"]["name"] = arguments.name
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            file.write(json.dumps(write_back(profile, fit, values), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
