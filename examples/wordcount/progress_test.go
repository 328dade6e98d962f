package main

import (
	"strings"
	"testing"
	"time"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/streams"
)

// TestProgress: the bar is of all tasks together, grows, and ends with a line of its
// own; what is taken away no longer counts.
func TestProgress(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out)
	tell := func(partition int32, phase streams.RestorePhase, offset int64) {
		p.listen(streams.RestoreProgress{
			Task: membership.TaskID{Subtopology: "1", Partition: partition}, Phase: phase,
			Offset: offset, End: 200, Records: offset - 100, Elapsed: time.Second,
		})
	}
	tell(0, streams.RestoreBegin, 100)
	tell(1, streams.RestoreBegin, 100)
	tell(2, streams.RestoreBegin, 100)
	tell(2, streams.RestoreSuspended, 100)
	tell(0, streams.RestoreBatch, 150)
	tell(1, streams.RestoreBatch, 200)
	tell(1, streams.RestoreEnd, 200)
	tell(0, streams.RestoreEnd, 200)
	bars := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\r")
	last := bars[len(bars)-1]
	if !strings.HasSuffix(out.String(), "\n") || !strings.Contains(last, "100%") || !strings.Contains(last, "200 records, 200 a second") {
		t.Errorf("the last bar is %q", last)
	}
	if !strings.Contains(out.String(), " 75% 150 records") {
		t.Errorf("there is no bar at 75%%: %q", bars)
	}
}
