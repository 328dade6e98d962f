package taskmgr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/state"
)

// storage is where the stores of a thread's tasks keep what they have.
type storage struct {
	dir    *Directory   // nil: there are no persistent stores
	disk   *state.Disk  // what persistent stores share
	cache  *state.Cache // of the thread; nil: changes are not held back
	global *GlobalState // nil: there are no global stores
	log    *slog.Logger

	// exactlyOnce says that stores must never be found with what isn't committed.
	exactlyOnce bool

	readable  *state.Registry // nil: nobody reads the stores besides the tasks
	confirmed func() bool     // the thread is lately known to be a member
}

// taskStore is one state store of a task.
type taskStore struct {
	state.Store
	task   *task
	log    *Changelog // nil: not logged
	source bool       // log is a source topic, which is not written to
	dir    string     // of its files, empty where it has none

	// position is the offset of the changelog up to which the store has what is
	// in it, while the store is with the updater.
	position int64

	bulk bool // it is being loaded in bulk
}

// beginning is the position of an empty store, before any changelog's start.
const beginning = -1

// newStore makes a store of a task, not yet open.
func newStore(t *task, spec StoreSpec) *taskStore {
	s := &taskStore{Store: spec.New(), task: t, source: spec.ChangelogIsSource, position: beginning}
	if spec.Changelog != "" {
		s.log = &Changelog{Topic: spec.Changelog, Partition: t.id.Partition, Context: context.Background()}
	}
	if spec.Persistent && t.storage.dir != nil {
		// The suffix keeps names such as ".." harmless.
		s.dir = filepath.Join(t.storage.dir.task(t.id), url.PathEscape(s.Name())+".store")
	}
	return s
}

// open opens the store as it is on disk. What is damaged there is thrown away if
// the changelog has it.
func (s *taskStore) open() error {
	err := s.openAs(false)
	if s.log != nil && errors.Is(err, state.ErrCorrupt) {
		s.task.storage.log.Warn("a state store is rebuilt from its changelog, because its files are damaged",
			"task", s.task.id, "store", s.Name(), "err", err)
		if err := os.RemoveAll(s.dir); err != nil {
			return err
		}
		return s.openAs(true)
	}
	return err
}

func (s *taskStore) openAs(fresh bool) error {
	ctx := state.OpenContext{
		Dir: s.dir, Fresh: fresh, Disk: s.task.storage.disk, Cache: s.task.storage.cache,
		Record: func() any { return s.task.ctx.Moment() },
	}
	switch {
	case s.log != nil && !s.source:
		ctx.Changelog = changelog{s.task.ctx.Out, s.log}
	case s.task.storage.exactlyOnce:
		// A store without one would be checkpointed when it is flushed, which is
		// before the commit.
		ctx.Changelog = unlogged{}
	}
	if err := s.Open(ctx); err != nil {
		return err
	}
	s.position = beginning
	if offset, ok := s.Checkpointed(); ok && s.log != nil {
		s.position = offset
	}
	return nil
}

// RestoreRecord writes a record of a store's changelog to the store.
func RestoreRecord(s state.Store, rec *kgo.Record) error {
	timestamp := rec.Timestamp.UnixMilli()
	h, ok := s.(state.HeaderRestorer)
	if !ok {
		return s.Restore(rec.Key, rec.Value, timestamp)
	}
	var headers []state.Header
	for _, header := range rec.Headers {
		headers = append(headers, state.Header(header))
	}
	return h.RestoreHeaders(rec.Key, rec.Value, timestamp, headers)
}

// reopen empties the store.
func (s *taskStore) reopen() error { return errors.Join(s.Close(), s.openAs(true)) }

// settled is the offset up to which the store of a running task, whose changes are
// flushed and written, has its changelog.
func (s *taskStore) settled() int64 {
	if s.source {
		return s.task.processed(s.log.Topic)
	}
	return max(s.position, s.log.written.Load())
}

// checkpoint has a persistent store found as it is now, with the changelog up to
// its position, even after a crash.
func (s *taskStore) checkpoint() error {
	switch {
	case s.log == nil && s.task.storage.exactlyOnce:
		return s.Checkpoint(0)
	case s.log == nil || s.position == beginning:
		return nil
	}
	return s.Checkpoint(s.position)
}

// discard throws the store's files away if they can't be trusted and the changelog
// has what they have. The store is closed.
func (s *taskStore) discard(reason error) error {
	var failed *state.Error
	if s.dir == "" || s.log == nil || !errors.As(reason, &failed) || failed.Store != s.Name() || !errors.Is(reason, state.ErrCorrupt) {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// Changelogs of a task are known by the ids of their topics, because a topic that
// was deleted and made again has other records at the same offsets.

// trust has what a store has of a changelog thrown away if it is of another topic
// of the same name. It is called before a store is filled, and ids are those of the
// topics now.
func (t *task) trust(ids topics) error {
	if t.storage.dir == nil {
		return nil
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	dir := t.storage.dir.task(t.id)
	file := readTaskFile(dir)
	now := taskFile{Changelogs: make(map[string]string)}
	for _, s := range t.stores {
		if s.log == nil || s.dir == "" {
			continue
		}
		id := fmt.Sprintf("%x", ids[s.log.Topic].id)
		now.Changelogs[s.log.Topic] = id
		if s.position != beginning && file.Changelogs[s.log.Topic] != id {
			t.storage.log.Warn("a state store is rebuilt from its changelog, which is not the topic that the store was filled from",
				"task", t.id, "store", s.Name(), "changelog", s.log.Topic)
			if err := s.reopen(); err != nil {
				return err
			}
		}
	}
	if len(now.Changelogs) == 0 {
		return nil
	}
	return now.write(dir)
}

// leave remembers where the task's stores are, which are closed.
func (t *task) leave() error {
	dir := t.storage.dir.task(t.id)
	file := readTaskFile(dir)
	if len(file.Changelogs) == 0 {
		return nil
	}
	file.Position = 0
	for _, s := range t.stores {
		if s.log != nil && s.position > 0 {
			file.Position += s.position
		}
	}
	t.storage.dir.sleep(t.id.String(), file.Position)
	return file.write(dir)
}
