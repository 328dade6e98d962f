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
	directory *taskmgr.Directory
	disk      *state.Disk
}

// openStorage opens the application's state directory if a store needs it. The
// process id is then the directory's.
func (a *App) openStorage() (err error) {
	if !a.compiled.Persistent() {
		return nil
	}
	if a.storage.directory, err = a.openDirectory(); err != nil {
		return err
	}
	a.process = a.storage.directory.Process()
	options := a.cfg.Disk
	orDefault(&options.Logger, a.cfg.Logger)
	a.storage.disk = state.NewDisk(options)
	return nil
}

func (a *App) openDirectory() (*taskmgr.Directory, error) {
	return taskmgr.OpenDirectory(a.cfg.StateDir, a.cfg.ApplicationID, a.process)
}

func (a *App) closeStorage() error {
	if a.storage.directory == nil {
		return nil
	}
	return errors.Join(a.storage.disk.Close(), a.storage.directory.Close())
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
