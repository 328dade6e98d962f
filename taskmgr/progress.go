package taskmgr

import (
	"time"

	"github.com/odradek-go/odradek/membership"
)

// RestorePhase is what is told of a store's restoration.
type RestorePhase int8

// The phases.
const (
	RestoreBegin     RestorePhase = iota // reading the changelog begins
	RestoreBatch                         // some of it was written to the store
	RestoreEnd                           // the store is complete
	RestoreSuspended                     // the task was taken away, or failed, before that
)

// RestoreProgress says how far a store of a task that is to run has been restored
// from its changelog.
type RestoreProgress struct {
	Task      membership.TaskID
	Store     string // its name
	Topic     string // the changelog's
	Partition int32
	Phase     RestorePhase

	// Offset is the changelog's next offset, and End the one at which the store
	// is complete. There may be fewer records in between.
	Offset, End int64

	// Records is how many were restored since RestoreBegin, and Elapsed is how
	// long that has taken.
	Records int64
	Elapsed time.Duration
}

// tell reports where a restoration is, of a task that is to run.
func (u *updater) tell(r *restoration, phase RestorePhase) {
	if u.onRestore == nil || !r.of.run {
		return
	}
	u.onRestore(RestoreProgress{
		Task: r.of.task.id, Store: r.store.Name(), Topic: r.store.log.Topic, Partition: r.store.log.Partition,
		Phase: phase, Offset: r.store.position, End: r.target, Records: r.records, Elapsed: time.Since(r.began),
	})
}
