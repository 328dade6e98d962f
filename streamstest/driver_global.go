package streamstest

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/taskmgr"
)

// driverGlobal are the global stores, which all subtopologies see.
type driverGlobal struct {
	*taskmgr.GlobalState
	topics []string
	views  []state.Store // of the stores, for tasks and for the test
	next   int64         // the offset of the next record, of all topics
}

// openGlobal opens the global stores, if there are any.
func (d *Driver) openGlobal() (err error) {
	spec := d.compiled.Global
	if spec == nil {
		return nil
	}
	g := &driverGlobal{topics: spec.Topics}
	if g.GlobalState, err = taskmgr.OpenGlobalState(spec, "global", d.disk, false, &d.out, d.compiled.OnRecordError); err != nil {
		return err
	}
	d.global = g
	g.SetSystemTime(d.now.UnixMilli())
	if g.views, err = g.Views(); err != nil {
		return err
	}
	for _, s := range g.views {
		d.stores[s.Name()] = s
	}
	return nil
}

func (d *Driver) closeGlobal() {
	if d.global == nil {
		return
	}
	d.closeStores(d.global.views)
	if err := d.global.Close(); err != nil {
		d.tb.Errorf("streamstest: close: %v", err)
	}
}

// reads says whether global stores are filled from a topic. A nil driverGlobal has none.
func (g *driverGlobal) reads(topic string) bool { return g != nil && slices.Contains(g.topics, topic) }

// process has the global stores take in a record.
func (g *driverGlobal) process(rec *kgo.Record) error {
	read := *rec
	read.Partition, read.Offset = 0, g.next
	g.next++
	return g.Process(&read)
}
