package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// result is what one run took.
type result struct {
	rate  float64       // records a second, from the first output that was seen to the last
	start time.Duration // until the first output
	cpu   float64       // seconds per million records, start included
	peak  float64       // resident memory, MB
}

func (r result) String() string {
	return fmt.Sprintf("%8.0f records/s, %5.2f s CPU per million, %4.0f MB, first output after %.1f s", r.rate, r.cpu, r.peak, r.start.Seconds())
}

// usage reads what a process has taken so far from Linux's proc file system.
func usage(pid int) (r result, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return r, fmt.Errorf("read the process's usage (this needs Linux): %w", err)
	}
	// Behind the name, which is in parentheses, utime and stime are the 12th and
	// 13th field, in hundredths of a second.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, f := range fields[11:13] {
		ticks, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return r, err
		}
		r.cpu += ticks / 100
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return r, err
	}
	for line := range strings.Lines(string(status)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kb); n == 1 {
			r.peak = kb / 1024
		}
	}
	return r, nil
}

// contest is what a contestant does.
type contest struct{ mode, name string }

// results are those of all runs.
type results map[contest][]result

func rate(r result) float64 { return r.rate }

// median returns the median of what of says of the runs of a contest; NaN without any.
func (rs results) median(mode, name string, of func(result) float64) float64 {
	var all []float64
	for _, r := range rs[contest{mode, name}] {
		all = append(all, of(r))
	}
	return median(all)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// print shows the medians, the ratios to Java's, and what exactly once leaves of the
// rate: the median of the shares of runs that came one after the other.
func (rs results) print(modes []string) {
	cpu := func(r result) float64 { return r.cpu }
	peak := func(r result) float64 { return r.peak }
	for _, mode := range modes {
		fmt.Printf("\n%-18s medians  records/s  to Java   CPU s/million  to Java   peak MB  to Java\n", mode)
		for _, name := range contestants(mode) {
			if len(rs[contest{mode, name}]) == 0 {
				continue
			}
			fmt.Printf("  %-23s %11.0f %7.2fx %14.2f %8.2fx %9.0f %7.2fx\n", name,
				rs.median(mode, name, rate), rs.median(mode, name, rate)/rs.median(mode, "java", rate),
				rs.median(mode, name, cpu), rs.median(mode, name, cpu)/rs.median(mode, "java", cpu),
				rs.median(mode, name, peak), rs.median(mode, name, peak)/rs.median(mode, "java", peak))
		}
	}
	fmt.Println()
	for _, mode := range modes {
		with := mode + "-eos"
		if !slices.Contains(modes, with) {
			continue
		}
		for _, name := range contestants(mode) {
			if name == "kgo" || len(rs[contest{mode, name}]) == 0 { // it has no transactions
				continue
			}
			var shares []float64
			for i, r := range rs[contest{mode, name}] {
				shares = append(shares, rs[contest{with, name}][i].rate/r.rate)
			}
			fmt.Printf("%s of %s: %.2f of the rate at least once\n", with, name, median(shares))
		}
	}
}
