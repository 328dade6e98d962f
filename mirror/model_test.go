package mirror_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/mirror"
)

// A model of an application that counts words, of the cluster that it runs on, and
// of a mirror that copies what and when it likes. The application processes at
// least once: what it writes is there before it commits. Where Safe lets it start
// on the mirror, its counts must be the truth.

// modelLog is a partition: its records, of which those before start are gone.
type modelLog struct {
	start   int
	records []modelRecord
}

type modelRecord struct {
	word  int
	count int // in a changelog
}

func (l *modelLog) end() int { return len(l.records) }

type modelTopics struct {
	in, rep, log []*modelLog
}

func newModelTopics(partitions int) modelTopics {
	var t modelTopics
	for range partitions {
		t.in, t.rep, t.log = append(t.in, new(modelLog)), append(t.rep, new(modelLog)), append(t.log, new(modelLog))
	}
	return t
}

// all are the logs by topic.
func (t *modelTopics) all() map[string][]*modelLog {
	return map[string][]*modelLog{"in": t.in, "rep": t.rep, "log": t.log}
}

// modelApp is the application: words go from an input partition to the repartition
// partition that is theirs, and are counted there.
type modelApp struct {
	topics  modelTopics
	in, rep []int // the next offsets
	counts  map[int]int
}

func (a *modelApp) forward(p int) bool {
	if a.in[p] >= a.topics.in[p].end() {
		return false
	}
	word := a.topics.in[p].records[a.in[p]].word
	a.in[p]++
	rep := a.topics.rep[word%len(a.topics.rep)]
	rep.records = append(rep.records, modelRecord{word: word})
	return true
}

func (a *modelApp) count(p int) bool {
	if a.rep[p] >= a.topics.rep[p].end() {
		return false
	}
	word := a.topics.rep[p].records[a.rep[p]].word
	a.rep[p]++
	a.counts[word]++
	a.topics.log[p].records = append(a.topics.log[p].records, modelRecord{word, a.counts[word]})
	return true
}

// run processes all that there is.
func (a *modelApp) run() {
	for again := true; again; {
		again = false
		for p := range a.in {
			again = a.forward(p) || again
			again = a.count(p) || again
		}
	}
}

func TestSafeModel(t *testing.T) {
	for range 20 { // each is fast, and what is to be found is rare
		rapid.Check(t, safeModel)
	}
}

func safeModel(t *rapid.T) {
	partitions := rapid.IntRange(1, 2).Draw(t, "partitions")
	source := newModelTopics(partitions)
	app := modelApp{topics: source, in: make([]int, partitions), rep: make([]int, partitions), counts: make(map[int]int)}
	committed := map[string][]int{"in": make([]int, partitions), "rep": make([]int, partitions)}
	mirrored := newModelTopics(partitions)
	vouched := map[string][]int{"in": make([]int, partitions), "rep": make([]int, partitions), "log": make([]int, partitions)}
	checkpoint := mirror.Checkpoint{}
	partition := rapid.IntRange(0, partitions-1)

	commit := func(p int) {
		committed["in"][p], committed["rep"][p] = app.in[p], app.rep[p]
	}
	copyTo := func(topic string, p, end int) {
		from, to := source.all()[topic][p], mirrored.all()[topic][p]
		if end > to.end() {
			to.records = append(to.records, from.records[to.end():end]...)
		}
		to.start = min(max(to.start, from.start), to.end())
	}
	capture := func() {
		c := mirror.Checkpoint{
			Committed: map[string]map[int32]mirror.Commit{"in": {}, "rep": {}},
			Ends:      map[string]map[int32]int64{"rep": {}, "log": {}},
			Exact:     true,
		}
		for topic, offsets := range committed {
			for p, offset := range offsets {
				c.Committed[topic][int32(p)] = mirror.Commit{Offset: int64(offset)}
				c.Exact = c.Exact && offset == source.all()[topic][p].end()
			}
		}
		if rapid.Bool().Draw(t, "go on between") { // what is looked at last has moved on
			for p := range partitions {
				if app.forward(p) || app.count(p) {
					c.Exact = false
				}
			}
		}
		for p := range partitions {
			c.Ends["rep"][int32(p)], c.Ends["log"][int32(p)] = int64(source.rep[p].end()), int64(source.log[p].end())
		}
		checkpoint = c
	}
	actions := map[string]func(*rapid.T){
		"produce": func(t *rapid.T) {
			l := source.in[partition.Draw(t, "partition")]
			l.records = append(l.records, modelRecord{word: rapid.IntRange(0, 3).Draw(t, "word")})
		},
		"forward": func(t *rapid.T) { app.forward(partition.Draw(t, "partition")) },
		"count":   func(t *rapid.T) { app.count(partition.Draw(t, "partition")) },
		"commit":  func(t *rapid.T) { commit(partition.Draw(t, "partition")) },
		"purge": func(t *rapid.T) { // what is committed of repartition topics is deleted
			p := partition.Draw(t, "partition")
			source.rep[p].start = committed["rep"][p]
		},
		"idle": func(*rapid.T) {
			app.run()
			for p := range partitions {
				commit(p)
			}
		},
		"capture": func(*rapid.T) { capture() },
		"mirror": func(t *rapid.T) { // some of a partition, and vouch for some of it
			topic := rapid.SampledFrom([]string{"in", "rep", "log"}).Draw(t, "topic")
			p := partition.Draw(t, "partition")
			copyTo(topic, p, rapid.IntRange(0, source.all()[topic][p].end()).Draw(t, "end"))
			vouched[topic][p] = rapid.IntRange(vouched[topic][p], mirrored.all()[topic][p].end()).Draw(t, "vouched")
		},
		"mirror to the checkpoint": func(t *rapid.T) {
			for topic, ends := range checkpoint.Ends {
				for p, end := range ends {
					copyTo(topic, int(p), int(end))
					vouched[topic][p] = mirrored.all()[topic][p].end()
				}
			}
			for p := range partitions {
				if rapid.IntRange(0, 4).Draw(t, "inputs too") > 0 {
					copyTo("in", p, source.in[p].end())
					vouched["in"][p] = mirrored.in[p].end()
				}
			}
		},
		"retention": func(t *rapid.T) { // on the mirror, of what is processed
			p := partition.Draw(t, "partition")
			l := mirrored.in[p]
			l.start = min(max(l.start, committed["in"][p]), l.end())
		},
	}
	names := []string{"produce", "produce", "forward", "forward", "count", "count", "commit", "purge", "idle", "capture", "capture", "mirror", "mirror to the checkpoint"}
	if rapid.IntRange(0, 3).Draw(t, "with retention") == 0 {
		names = append(names, "retention")
	}
	for range rapid.IntRange(0, 40).Draw(t, "actions") {
		actions[rapid.SampledFrom(names).Draw(t, "action")](t)
	}

	// The source dies, and new records go to the mirror.
	truth := make(map[int]int)
	for p, l := range mirrored.in {
		for _, r := range source.in[p].records[:l.end()] {
			truth[r.word]++
		}
		for range rapid.IntRange(0, 4).Draw(t, "new records") {
			l.records = append(l.records, modelRecord{word: 0})
			truth[0]++
		}
	}
	on := mirror.Mirrored{States: make(mirror.States), Logs: make(mirror.Logs)}
	for topic, logs := range mirrored.all() {
		on.Logs[topic] = make(map[int32]mirror.Log)
		for p, l := range logs {
			on.Logs[topic][int32(p)] = mirror.Log{Start: int64(l.start), End: int64(l.end())}
			on.States.Set(topic, int32(p), mirror.Partition{LastMirroredOffset: int64(vouched[topic][p]) - 1, State: mirror.Stopped})
		}
	}
	like := mirror.Application{
		Inputs: []string{"in"}, Repartitions: []string{"rep"}, Changelogs: []string{"log"},
		AllowRepeats: rapid.Bool().Draw(t, "repeats"),
	}
	if rapid.Bool().Draw(t, "never rebuild") {
		like.Outputs = []string{"in"}
	}
	plan, err := mirror.Safe(like, checkpoint, on)
	if err != nil {
		return
	}

	// The application starts on the mirror.
	next := modelApp{topics: mirrored, in: make([]int, partitions), rep: make([]int, partitions), counts: make(map[int]int)}
	if len(plan.Deletes()) > 0 {
		next.topics.rep, next.topics.log = newModelTopics(partitions).rep, newModelTopics(partitions).log
	}
	for _, l := range next.topics.log {
		for _, r := range l.records {
			next.counts[r.word] = r.count
		}
	}
	for topic, offsets := range map[string][]int{"in": next.in, "rep": next.rep} {
		for p := range offsets {
			offsets[p] = int(plan.Starts()[topic][int32(p)].Offset)
			if start := next.topics.all()[topic][p].start; offsets[p] < start {
				t.Fatalf("%s-%d starts at %d, but its records start at %d", topic, p, offsets[p], start)
			}
		}
	}
	next.run()
	for word := range 4 {
		switch got, want := next.counts[word], truth[word]; {
		case got < want:
			t.Fatalf("to %s: word %d is counted %d times, but was there %d times", plan.Strategy, word, got, want)
		case got > want && plan.Strategy != mirror.Repeat:
			t.Fatalf("to %s: word %d is counted %d times, but was there only %d times", plan.Strategy, word, got, want)
		}
	}
}
