package streams

import "errors"

// ErrTopology is in the error of [NewApp] for a topology that can't work.
var ErrTopology = errors.New("streams: invalid topology")

// ErrConfig is in the error of [NewApp] for a [Config] that can't work.
var ErrConfig = errors.New("streams: invalid configuration")

// ErrStarted is returned by [App.Run] when it was called before.
var ErrStarted = errors.New("streams: an App runs once; make a new one")
