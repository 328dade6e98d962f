package state

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is what the persistent stores of an application share: the cache of what
// is read from their files, the limit on open files, and the settings.
type Disk struct {
	options DiskOptions
	cache   *pebble.Cache
	files   *pebble.FileCache
	loading atomic.Int32 // stores that are loaded in bulk
}

// DiskOptions are the settings of a [Disk]. The zero value is the defaults.
//
// The memory that persistent stores take is the block cache, once, and for each
// open store some multiple of WriteBuffer: half of it for changes that were not
// written to the files yet, or two times where that much comes between two
// checkpoints; as much again for what was written last; and up to three for what
// is on its way. Stores that are restored take LoadBuffer together.
//
// After a crash a store is found at a checkpoint that is behind its changelog by
// no more than some six times WriteBuffer of changes, unless checkpoints are
// farther apart.
type DiskOptions struct {
	// BlockCache is how many bytes of the files are kept in memory, for all
	// stores together. 64 MiB by default.
	BlockCache int64

	// WriteBuffer is in bytes how much of a store's changes is collected
	// before it is written to a file. 8 MiB by default.
	WriteBuffer int

	// LoadBuffer is in bytes how much is collected, by all stores together that
	// are restored and behind by much, before it is sorted into files. 32 MiB by
	// default.
	LoadBuffer int

	// MaxOpenFiles limits the open files of all stores together. 1000 by
	// default.
	MaxOpenFiles int

	// FS is the file system, the operating system's by default.
	FS vfs.FS

	// InMemory has stores whose data would be in files keep it in memory, and
	// start empty, which is quicker in tests. Nothing else of the options counts
	// then.
	InMemory bool

	// Logger takes what the files' engine meets in the background, which is
	// worth a warning, and nothing by default.
	Logger *slog.Logger
}

// NewDisk returns a Disk, which must be closed after its stores.
func NewDisk(options DiskOptions) *Disk {
	if options.InMemory {
		return &Disk{options: options}
	}
	if options.BlockCache == 0 {
		options.BlockCache = 64 << 20
	}
	if options.WriteBuffer == 0 {
		options.WriteBuffer = 8 << 20
	}
	if options.LoadBuffer == 0 {
		options.LoadBuffer = 32 << 20
	}
	if options.MaxOpenFiles == 0 {
		options.MaxOpenFiles = 1000
	}
	if options.FS == nil {
		options.FS = vfs.Default
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	return &Disk{
		options: options,
		cache:   pebble.NewCache(options.BlockCache),
		files:   pebble.NewFileCache(runtime.GOMAXPROCS(0), options.MaxOpenFiles),
	}
}

// Close gives the memory back.
func (d *Disk) Close() error {
	if d.options.InMemory {
		return nil
	}
	d.files.Unref()
	d.cache.Unref()
	return nil
}

func (d *Disk) pebbleOptions(dir string, fs files, failed func(error)) *pebble.Options {
	o := &pebble.Options{
		FS:        fs,
		Cache:     d.cache,
		FileCache: d.files,

		// The changelog is the log. Without another one a crash takes what was
		// not flushed, in whole batches and the latest first: the store is
		// found at an earlier checkpoint.
		DisableWAL: true,

		MemTableSize:                uint64(d.options.WriteBuffer),
		MemTableStopWritesThreshold: 3,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       40,
		FormatMajorVersion:          pebble.FormatNewest,
		Logger:                      pebbleLogger{d.options.Logger.With("dir", dir), failed},
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { failed(err); fs.park() },
			DataCorruption:  func(info pebble.DataCorruptionInfo) { failed(info.Details) },
		},
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	o.EnsureDefaults()
	return o
}

// pebbleLogger is what pebble logs to. What pebble calls fatal ends the engine
// and not the process.
type pebbleLogger struct {
	log    *slog.Logger
	failed func(error)
}

func (l pebbleLogger) Infof(string, ...any) {}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.log.Log(context.Background(), slog.LevelWarn, "pebble", "err", errorf(format, args))
}
