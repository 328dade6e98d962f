package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// position is where input topics are reset to.
type position struct {
	earliest, latest bool
	offset, shift    int64
	datetime         string
	duration         string
	file             string

	which string // the flag that was given; empty: to-earliest
	since time.Time
	plan  map[string]map[int32]int64 // of the file
}

var positionFlags = []string{"to-earliest", "to-latest", "to-offset", "shift-by", "to-datetime", "by-duration", "from-file"}

func (p *position) flags(f *flag.FlagSet) {
	f.BoolVar(&p.earliest, "to-earliest", false, "reset to the earliest offsets, which is the default")
	f.BoolVar(&p.latest, "to-latest", false, "reset to the latest offsets")
	f.Int64Var(&p.offset, "to-offset", 0, "reset to this `offset`")
	f.Int64Var(&p.shift, "shift-by", 0, "move the committed offsets by `n`, which may be negative")
	f.StringVar(&p.datetime, "to-datetime", "", "reset to the first records from this `time` on, such as 2026-01-31T12:00:00 (UTC)\nor 2026-01-31T12:00:00+01:00")
	f.StringVar(&p.duration, "by-duration", "", "reset to the first records since this `time` ago, such as 36h or P1DT12H")
	f.StringVar(&p.file, "from-file", "", "reset to the offsets in this CSV `FILE`, with lines topic,partition,offset")
}

// check says what is wrong with the flags, and reads what they name.
func (p *position) check(set map[string]bool) (err error) {
	for _, name := range positionFlags {
		if set[name] && p.which != "" {
			return &usageError{reason: fmt.Sprintf("-%s and -%s exclude each other", p.which, name)}
		}
		if set[name] {
			p.which = name
		}
	}
	switch p.which {
	case "to-offset":
		if p.offset < 0 {
			return &usageError{reason: fmt.Sprintf("-to-offset is %d; offsets begin at 0", p.offset)}
		}
	case "to-datetime":
		if p.since, err = parseTime(p.datetime); err != nil {
			return &usageError{reason: fmt.Sprintf("-to-datetime: %v", err)}
		}
	case "by-duration":
		ago, err := parseDuration(p.duration)
		if err != nil {
			return &usageError{reason: fmt.Sprintf("-by-duration: %v", err)}
		}
		p.since = time.Now().Add(-ago)
	case "from-file":
		if p.plan, err = readPlan(p.file); err != nil {
			return fmt.Errorf("-from-file %w", err)
		}
	}
	return nil
}

// topics are those that a file has offsets for.
func (p *position) topics() []string { return slices.Sorted(maps.Keys(p.plan)) }

// move is what is done to a partition.
type move struct {
	topic     string
	partition int32
	from      int64 // what was committed, −1 for nothing
	to        int64
}

// moves are what is done to the partitions of topics, sorted.
func (p *position) moves(ctx context.Context, adm *kadm.Client, group string, topics []string) ([]move, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	list := func(what string, f func(context.Context, ...string) (kadm.ListedOffsets, error)) (kadm.ListedOffsets, error) {
		listed, err := f(ctx, topics...)
		if err == nil {
			err = listed.Error()
		}
		if err != nil {
			return nil, fmt.Errorf("list the %s offsets of %v: %w", what, topics, err)
		}
		return listed, nil
	}
	starts, err := list("earliest", adm.ListStartOffsets)
	if err != nil {
		return nil, err
	}
	ends, err := list("latest", adm.ListEndOffsets)
	if err != nil {
		return nil, err
	}
	commits, err := adm.FetchOffsets(ctx, group)
	if err == nil {
		err = commits.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("fetch the offsets that group %q has committed: %w", group, err)
	}
	var since kadm.ListedOffsets
	if !p.since.IsZero() {
		if since, err = list("later", func(ctx context.Context, topics ...string) (kadm.ListedOffsets, error) {
			return adm.ListOffsetsAfterMilli(ctx, p.since.UnixMilli(), topics...)
		}); err != nil {
			return nil, err
		}
	}
	var moves []move
	starts.Each(func(start kadm.ListedOffset) {
		m := move{topic: start.Topic, partition: start.Partition, from: -1}
		end, _ := ends.Lookup(m.topic, m.partition)
		if o, ok := commits.Lookup(m.topic, m.partition); ok {
			m.from = o.At
		}
		switch p.which {
		case "", "to-earliest":
			m.to = start.Offset
		case "to-latest":
			m.to = end.Offset
		case "to-offset":
			m.to = p.offset
		case "shift-by":
			if m.to = m.from; m.from < 0 {
				m.to = start.Offset
			}
			m.to += p.shift
		case "to-datetime", "by-duration":
			o, _ := since.Lookup(m.topic, m.partition)
			m.to = o.Offset
		case "from-file":
			offset, ok := p.plan[m.topic][m.partition]
			if !ok {
				return
			}
			m.to = offset
		}
		m.to = min(max(m.to, start.Offset), end.Offset)
		moves = append(moves, m)
	})
	slices.SortFunc(moves, func(a, b move) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
	return moves, p.checkPlan(moves)
}

// checkPlan says which partitions of a file aren't among the moves.
func (p *position) checkPlan(moves []move) error {
	for _, topic := range p.topics() {
		for _, partition := range slices.Sorted(maps.Keys(p.plan[topic])) {
			if !slices.ContainsFunc(moves, func(m move) bool { return m.topic == topic && m.partition == partition }) {
				return fmt.Errorf("-from-file %s has %s-%d, which isn't a partition of an input topic", p.file, topic, partition)
			}
		}
	}
	return nil
}

// parseTime reads a time with a zone, or one in UTC.
func parseTime(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time such as 2026-01-31T12:00:00", s)
}

var isoDuration = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

// parseDuration reads PnDTnHnMnS, as Java's tools do, or Go's form.
func parseDuration(s string) (time.Duration, error) {
	wrong := fmt.Errorf("%q is no duration such as 36h or P1DT12H", s)
	m := isoDuration.FindStringSubmatch(strings.ToUpper(s))
	if m == nil {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return 0, wrong
		}
		return d, nil
	}
	var sum float64
	given := false
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.ParseFloat(m[i+1], 64)
		if err != nil {
			return 0, wrong
		}
		sum, given = sum+n*float64(unit), true
	}
	if !given || sum >= float64(1<<63-1) {
		return 0, wrong
	}
	return time.Duration(sum), nil
}

// readPlan reads offsets from a CSV file.
func readPlan(file string) (map[string]map[int32]int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord, r.TrimLeadingSpace = 3, true
	lines, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	plan := make(map[string]map[int32]int64)
	for i, line := range lines {
		partition, err1 := strconv.ParseInt(strings.TrimSpace(line[1]), 10, 32)
		offset, err2 := strconv.ParseInt(strings.TrimSpace(line[2]), 10, 64)
		topic := strings.TrimSpace(line[0])
		if errors.Join(err1, err2) != nil || topic == "" || partition < 0 || offset < 0 {
			return nil, fmt.Errorf("%s: record %d is %q, not topic,partition,offset", file, i+1, strings.Join(line, ","))
		}
		if plan[topic] == nil {
			plan[topic] = make(map[int32]int64)
		}
		plan[topic][int32(partition)] = offset
	}
	if len(plan) == 0 {
		return nil, fmt.Errorf("%s has no offsets", file)
	}
	return plan, nil
}
