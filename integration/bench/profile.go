package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// profiled runs a contestant and writes what profiles show of it, if that is wanted.
func profiled(o options, run func() error) (err error) {
	if o.profiles == "" {
		return run()
	}
	cpu, err := os.Create(filepath.Join(o.profiles, o.app+".cpu"))
	if err != nil {
		return err
	}
	defer cpu.Close()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	err = run()
	pprof.StopCPUProfile()
	heap, e := os.Create(filepath.Join(o.profiles, o.app+".heap"))
	if e != nil {
		return errors.Join(err, e)
	}
	return errors.Join(err, pprof.Lookup("heap").WriteTo(heap, 0), heap.Close())
}
