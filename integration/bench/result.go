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
	rate  float64       // records a second, from the first output to the last
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

// print shows the medians, and the ratios to Java's.
func print(mode string, runs int, results map[string][]result) {
	median := func(name string, of func(result) float64) float64 {
		var v []float64
		for _, r := range results[name] {
			v = append(v, of(r))
		}
		if len(v) == 0 {
			return math.NaN() // it didn't take part
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	rate := func(r result) float64 { return r.rate }
	cpu := func(r result) float64 { return r.cpu }
	peak := func(r result) float64 { return r.peak }
	fmt.Printf("\n%s, medians of %d        records/s  to Java   CPU s/million  to Java   peak MB  to Java\n", mode, runs)
	for _, name := range contestants(mode) {
		if len(results[name]) == 0 {
			continue
		}
		fmt.Printf("  %-26s %11.0f %7.2fx %14.2f %8.2fx %9.0f %7.2fx\n", name,
			median(name, rate), median(name, rate)/median("java", rate),
			median(name, cpu), median(name, cpu)/median("java", cpu),
			median(name, peak), median(name, peak)/median("java", peak))
	}
	fmt.Println()
}
