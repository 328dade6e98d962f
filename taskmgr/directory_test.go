package taskmgr

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/odradek-go/odradek/membership"
)

func openDirectory(t *testing.T, in string) *Directory {
	t.Helper()
	d, err := OpenDirectory(in, "app", "process-1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestDirectoryIdentity: the process id is the first one's, and nobody else gets in.
func TestDirectoryIdentity(t *testing.T) {
	in := t.TempDir()
	d := openDirectory(t, in)
	if _, err := OpenDirectory(in, "app", "process-2"); !errors.Is(err, ErrDirectoryLocked) {
		t.Errorf("a second instance: %v", err)
	}
	if other, err := OpenDirectory(in, "other", "process-3"); err != nil || other.Process() != "process-3" || other.Close() != nil {
		t.Errorf("another application: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if again, err := OpenDirectory(in, "app", "process-2"); err != nil || again.Process() != "process-1" || again.Close() != nil {
		t.Errorf("opened again: %v", err)
	}
}

// TestKilledDirectory: a directory is ours at whatever instant the process was killed that
// has made it.
func TestKilledDirectory(t *testing.T) {
	file := []byte(`{"format":1,"application":"app","process":"process-0"}`)
	for name, make := range map[string]func(dir string) error{
		"before the lock":     func(string) error { return nil },
		"after the lock":      func(dir string) error { return os.WriteFile(filepath.Join(dir, ".lock"), nil, 0o600) },
		"before it was named": func(dir string) error { return os.WriteFile(filepath.Join(dir, "odradek.json.new"), nil, 0o600) },
		"in the middle of its name": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "odradek.json.new"), file[:20], 0o600)
		},
		"as it was named": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "odradek.json.new"), file, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := t.TempDir()
			dir := filepath.Join(in, "app")
			if err := errors.Join(os.Mkdir(dir, 0o700), make(dir)); err != nil {
				t.Fatal(err)
			}
			if d := openDirectory(t, in); d.Process() != "process-1" {
				t.Errorf("its process id is %q", d.Process())
			}
			if left, err := filepath.Glob(filepath.Join(dir, "*.new")); err != nil || len(left) > 0 {
				t.Errorf("%q are left, %v", left, err)
			}
		})
	}
}

// TestForeignDirectory: what is somebody else's is left alone.
func TestForeignDirectory(t *testing.T) {
	for name, write := range map[string]func(dir string) error{
		"Java's": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "kafka-streams-process-metadata"), nil, 0o600)
		},
		"another application's": func(dir string) error {
			return writeFile(filepath.Join(dir, directoryFileName), directoryFile{directoryFormat, "moved", "p"})
		},
		"one of a later version": func(dir string) error {
			return writeFile(filepath.Join(dir, directoryFileName), directoryFile{directoryFormat + 1, "app", "p"})
		},
	} {
		in := t.TempDir()
		dir := filepath.Join(in, "app")
		if err := errors.Join(os.Mkdir(dir, 0o700), write(dir)); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the lock is given back
			if _, err := OpenDirectory(in, "app", "p"); !errors.Is(err, ErrForeignDirectory) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestDirectoryTasks: a task's directory is used by one at a time, is known to the
// group when it isn't used, and is removed when that is long ago.
func TestDirectoryTasks(t *testing.T) {
	in := t.TempDir()
	d := openDirectory(t, in)
	tasks := []membership.TaskID{{Subtopology: "0", Partition: 1}, {Subtopology: "1", Partition: 12}}
	for i, task := range tasks {
		if !d.use(task) || d.use(task) {
			t.Errorf("%v can't be used, or twice", task)
		}
		file := taskFile{Changelogs: map[string]string{"log": "id"}, Position: int64(10 * (i + 1))}
		if err := errors.Join(os.Mkdir(d.task(task), 0o700), file.write(d.task(task)), d.free(task)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	d = openDirectory(t, in)
	dormant := func() map[membership.TaskID]int64 {
		positions := make(map[membership.TaskID]int64)
		d.addDormant(positions)
		return positions
	}
	if got, want := dormant(), map[membership.TaskID]int64{tasks[0]: 10, tasks[1]: 20}; !maps.Equal(got, want) {
		t.Errorf("dormant are %v, want %v", got, want)
	}
	if !d.use(tasks[0]) {
		t.Fatal("it is in use")
	}
	if got, want := dormant(), map[membership.TaskID]int64{tasks[1]: 20}; !maps.Equal(got, want) {
		t.Errorf("dormant are %v, want %v", got, want)
	}

	if removed, err := d.Clean(time.Hour); err != nil || len(removed) > 0 {
		t.Errorf("removed %v (%v), though they were used lately", removed, err)
	}
	if removed, err := d.Clean(0); err != nil || !slices.Equal(removed, []string{"1_12"}) {
		t.Errorf("removed %v (%v), want what is not used", removed, err)
	}
	if got := dormant(); len(got) > 0 {
		t.Errorf("dormant are %v", got)
	}
	if _, err := os.Stat(d.task(tasks[0])); err != nil {
		t.Error("what is used is gone")
	}
	if err := d.free(tasks[0]); err != nil {
		t.Fatal(err)
	}
}
