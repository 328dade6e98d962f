package state

import (
	"io"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// files is the file system as one engine sees it. Once the engine has failed
// nothing is written through it any more, whatever pebble still tries: the
// directory stays as it was, and another engine may go on with it.
//
// Pebble doesn't get the lock of the directory, since it may never give it back
// after a failure. The engine has it.
type files struct {
	vfs.FS
	ended     *atomic.Pointer[error] // nil while the engine goes on
	abandoned *atomic.Bool           // pebble could not be ended
}

func (f files) err() error {
	f.park()
	if err := f.ended.Load(); err != nil {
		return *err
	}
	return nil
}

// park stops the goroutines of a pebble that was abandoned, which would try for
// ever. They can't be ended: pebble isn't made for it, and panics.
func (f files) park() {
	if f.abandoned.Load() {
		select {}
	}
}

func (f files) Unwrap() vfs.FS { return f.FS }

type unlocked struct{}

func (unlocked) Close() error { return nil }

func (f files) Lock(string) (io.Closer, error) { return unlocked{}, nil }

func (f files) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f.park()
	return f.file(f.FS.Open(name, o...))
}

func (f files) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	return f.file(f.FS.Create(name, c))
}

func (f files) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	return f.file(f.FS.OpenReadWrite(name, c, o...))
}

func (f files) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	return f.file(f.FS.ReuseForWrite(from, to, c))
}

func (f files) file(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return guardedFile{file, f}, nil
}

func (f files) Link(from, to string) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.FS.Link(from, to)
}

func (f files) Remove(name string) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f files) RemoveAll(name string) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.FS.RemoveAll(name)
}

func (f files) Rename(from, to string) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

// guardedFile is an open file.
type guardedFile struct {
	vfs.File
	in files
}

func (w guardedFile) Write(p []byte) (int, error) {
	if err := w.in.err(); err != nil {
		return 0, err
	}
	return w.File.Write(p)
}

func (w guardedFile) WriteAt(p []byte, at int64) (int, error) {
	if err := w.in.err(); err != nil {
		return 0, err
	}
	return w.File.WriteAt(p, at)
}

func (w guardedFile) ReadAt(p []byte, at int64) (int, error) {
	w.in.park()
	return w.File.ReadAt(p, at)
}
