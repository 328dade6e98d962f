package taskmgr

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/odradek-go/odradek/membership"
)

// What callers may want to tell apart with errors.Is.
var (
	// ErrDirectoryLocked is returned where another process has the state
	// directory open.
	ErrDirectoryLocked = errors.New("another instance of the application runs with the same state directory; give each instance its own")

	// ErrForeignDirectory is returned for a state directory that belongs to
	// something else.
	ErrForeignDirectory = errors.New("the state directory is not this application's; choose another, or remove it if nothing needs it")
)

// Directory is where the persistent stores of one instance of an application are,
// and what must survive the process beside them:
//
//	<state directory>/<application id>/
//		.lock                          held while the instance runs
//		odradek.json                   whose directory this is, and its process id
//		<task>/                        such as 1_0
//			task.json                  what changelogs the stores are of
//			<store>.store/             the store's files
//
// A task's directory is used by one task of the process at a time.
type Directory struct {
	path    string
	lock    *flock.Flock
	process string

	mu      sync.Mutex
	used    map[string]bool // by task id
	dormant map[membership.TaskID]int64
}

// directoryFormat is the layout's number. It changes with what an older version
// would misread.
const directoryFormat = 1

const directoryFileName = "odradek.json"

// directoryFile is what is in the file of that name.
type directoryFile struct {
	Format      int    `json:"format"`
	Application string `json:"application"`
	Process     string `json:"process"`
}

// OpenDirectory opens the directory of an application below stateDir, which is made
// where it isn't there, and locks it. The process id is the one that it was given
// first, or process. Among the errors are ErrDirectoryLocked and
// ErrForeignDirectory.
func OpenDirectory(stateDir, application, process string) (_ *Directory, err error) {
	d := &Directory{path: filepath.Join(stateDir, application), used: make(map[string]bool), dormant: make(map[membership.TaskID]int64)}
	defer func() {
		if err != nil {
			err = fmt.Errorf("state directory %s: %w", d.path, err)
		}
	}()
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, err
	}
	d.lock = flock.New(filepath.Join(d.path, ".lock"))
	locked, err := d.lock.TryLock()
	if err != nil {
		return nil, err
	}
	if !locked {
		return nil, ErrDirectoryLocked
	}
	if d.process, err = d.identify(application, process); err != nil {
		return nil, errors.Join(err, d.lock.Unlock())
	}
	names, err := d.taskNames()
	if err != nil {
		return nil, errors.Join(err, d.lock.Unlock())
	}
	for _, name := range names {
		d.sleep(name, readTaskFile(filepath.Join(d.path, name)).Position)
	}
	return d, nil
}

// identify reads the directory's file, or writes it into an empty directory.
func (d *Directory) identify(application, process string) (string, error) {
	var file directoryFile
	name := filepath.Join(d.path, directoryFileName)
	switch err := readFile(name, &file); {
	case errors.Is(err, fs.ErrNotExist):
		entries, err := os.ReadDir(d.path)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			if e.Name() != ".lock" && e.Name() != unfinished(directoryFileName) {
				return "", fmt.Errorf("%w: there is %q in it", ErrForeignDirectory, e.Name())
			}
		}
		return process, writeFile(name, directoryFile{directoryFormat, application, process})
	case err != nil:
		return "", err
	case file.Format != directoryFormat:
		return "", fmt.Errorf("%w: its format is %d, and we know %d", ErrForeignDirectory, file.Format, directoryFormat)
	case file.Application != application:
		return "", fmt.Errorf("%w: it is that of %q", ErrForeignDirectory, file.Application)
	}
	return file.Process, nil
}

// Process is the process id of the instance, which stays the same over restarts:
// a group moves no tasks away from a process that comes back.
func (d *Directory) Process() string { return d.process }

// Close gives the directory free.
func (d *Directory) Close() error { return d.lock.Unlock() }

// Remove removes the directory with all that is in it, and closes it.
func (d *Directory) Remove() error {
	names, err := d.taskNames()
	errs := []error{err}
	for _, name := range names {
		errs = append(errs, os.RemoveAll(filepath.Join(d.path, name)))
	}
	// The lock goes last: until then nobody else begins.
	errs = append(errs, os.Remove(filepath.Join(d.path, directoryFileName)))
	return errors.Join(append(errs, os.Remove(d.lock.Path()), d.Close(), os.Remove(d.path))...)
}

// use takes a task's directory; false says that another thread still has it.
func (d *Directory) use(task membership.TaskID) bool {
	if !d.take(task.String()) {
		return false
	}
	d.forget(task.String())
	return true
}

func (d *Directory) take(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.used[name] {
		return false
	}
	d.used[name] = true
	return true
}

// free gives a task's directory back, which counts as used until now.
func (d *Directory) free(task membership.TaskID) error {
	now := time.Now()
	err := os.Chtimes(d.task(task), now, now)
	d.give(task.String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d *Directory) give(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.used, name)
}

func (d *Directory) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.dormant, func(task membership.TaskID, _ int64) bool { return task.String() == name })
}

func (d *Directory) task(task membership.TaskID) string { return filepath.Join(d.path, task.String()) }

// taskNames are the names of the task directories.
func (d *Directory) taskNames() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, err := membership.ParseTaskID(e.Name()); err == nil && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Clean removes what is kept of tasks that nothing has used for so long. It returns
// the tasks.
func (d *Directory) Clean(unused time.Duration) (removed []string, err error) {
	names, err := d.taskNames()
	errs := []error{err}
	for _, name := range names {
		if !d.take(name) {
			continue
		}
		path := filepath.Join(d.path, name)
		info, err := os.Stat(path)
		if err == nil && time.Since(info.ModTime()) >= unused {
			if err = os.RemoveAll(path); err == nil {
				removed = append(removed, name)
				d.forget(name)
			}
		}
		d.give(name)
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// sleep notes where a task on disk is that nothing uses; 0: that isn't known.
func (d *Directory) sleep(name string, position int64) {
	task, err := membership.ParseTaskID(name)
	if err != nil || position == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dormant[task] = position
}

// addDormant adds the positions of the tasks that are on disk and not in use: the
// sums over their changelogs of the next offset. The group coordinator may give a
// task back to where it was.
func (d *Directory) addDormant(to map[membership.TaskID]int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for task, position := range d.dormant {
		if _, ok := to[task]; !ok && !d.used[task.String()] {
			to[task] = position
		}
	}
}

// taskFile is what is remembered of a task beside its stores.
type taskFile struct {
	// Changelogs are the ids of the topics that the stores were filled from, by
	// the topics' names.
	Changelogs map[string]string `json:"changelogs,omitempty"`

	// Position is the sum of the stores' positions when the task was closed
	// last, 0 where that isn't known.
	Position int64 `json:"position,omitempty"`
}

const taskFileName = "task.json"

// readTaskFile reads the file of a task's directory. One that isn't there or is
// damaged says nothing, so that the stores are rebuilt.
func readTaskFile(dir string) (file taskFile) {
	if err := readFile(filepath.Join(dir, taskFileName), &file); err != nil {
		return taskFile{}
	}
	return file
}

func (f taskFile) write(dir string) error { return writeFile(filepath.Join(dir, taskFileName), f) }

func readFile(name string, v any) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// writeFile writes a file whole or not at all.
func writeFile(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(unfinished(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync() // or after a loss of power it could have the name and be empty
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(unfinished(name), name)
}

// unfinished is the name of a file that is being written. A process that is killed
// leaves it behind.
func unfinished(name string) string { return name + ".new" }
