package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/taskmgr"
)

// storage is what the persistent stores of an application have on this machine,
// nil where it has none.
type storage struct {
	directory *taskmgr.Directory // may be there for the process id alone
	disk      *state.Disk
}

// ofStores is the directory, nil where no store needs one.
func (s storage) ofStores() *taskmgr.Directory {
	if s.disk == nil {
		return nil
	}
	return s.directory
}

// openStorage opens the application's state directory if a store needs it. The
// process id is then the directory's.
//
// Under exactly once it is so even where no store does: transactional ids are made of
// the process id, and the broker would keep those of every start for a week. There
// the directory may be missing, though: the id is then new.
func (a *App) openStorage() (err error) {
	persistent := a.compiled.Persistent()
	if !persistent && a.cfg.ProcessingGuarantee != ExactlyOnceV2 {
		return nil
	}
	switch a.storage.directory, err = a.openDirectory(); {
	case err == nil:
		a.process = a.storage.directory.Process()
	case persistent:
		return err
	default:
		a.cfg.Logger.Info("the transactional ids are new at this start, since there is no state directory to keep them in", "err", err)
	}
	if !persistent {
		return nil
	}
	options := a.cfg.Disk
	orDefault(&options.Logger, a.cfg.Logger)
	a.storage.disk = state.NewDisk(options)
	return nil
}

func (a *App) openDirectory() (*taskmgr.Directory, error) {
	return taskmgr.OpenDirectory(a.cfg.StateDir, a.cfg.ApplicationID, a.process)
}

func (a *App) closeStorage() error {
	var err error
	if a.storage.disk != nil {
		err = a.storage.disk.Close()
	}
	if a.storage.directory != nil {
		err = errors.Join(err, a.storage.directory.Close())
	}
	return err
}

// keepClean removes the state of tasks that have been elsewhere for long, until ctx
// ends.
func (a *App) keepClean(ctx context.Context) {
	if a.storage.directory == nil {
		return
	}
	tick := time.NewTicker(a.cfg.StateCleanupDelay)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		removed, err := a.storage.directory.Clean(a.cfg.StateCleanupDelay)
		if len(removed) > 0 {
			a.cfg.Logger.Info("removed the state of tasks that have moved elsewhere", "tasks", removed)
		}
		if err != nil {
			a.cfg.Logger.Warn("the state of tasks that have moved elsewhere could not be removed", "err", err)
		}
	}
}

// CleanUp removes what the application has on this machine's disk, such as after a
// reset. Persistent stores are then rebuilt from their changelogs. It must not be
// called while Run is under way, nor while another instance runs with the same
// state directory (errors.Is with [taskmgr.ErrDirectoryLocked]).
func (a *App) CleanUp() error {
	switch a.State() {
	case Created, NotRunning, Error:
	default:
		return fmt.Errorf("streams: clean up: the application is %v", a.State())
	}
	d, err := a.openDirectory()
	if err != nil {
		return err
	}
	return d.Remove()
}
