package streams

import (
	"context"
	"errors"
	"fmt"

	"github.com/odradek-go/odradek/taskmgr"
)

// openGlobal opens the application's global stores, if there are any, and fills
// them: nothing runs before they are complete.
func (a *App) openGlobal(ctx context.Context) (err error) {
	if a.compiled.Global == nil {
		return nil
	}
	a.global, err = taskmgr.NewGlobalThread(context.WithoutCancel(ctx), taskmgr.GlobalConfig{
		Topology:       a.compiled.Global,
		Client:         a.cfg.clientOptions(),
		ClientID:       fmt.Sprintf("%s-GlobalStreamThread", a.cfg.ClientID),
		Directory:      a.storage.ofStores(),
		Disk:           a.storage.disk,
		Readable:       &a.queries.registry,
		CommitInterval: a.cfg.CommitInterval,
		ReadCommitted:  a.cfg.ProcessingGuarantee == ExactlyOnceV2,
		OnRecordError:  a.compiled.OnRecordError,
		Logger:         a.cfg.Logger,
	})
	if err != nil {
		return err
	}
	if err := a.global.Bootstrap(ctx); err != nil {
		return errors.Join(err, a.global.Close())
	}
	return nil
}

// globalState are the global stores, nil where there are none.
func (a *App) globalState() *taskmgr.GlobalState {
	if a.global == nil {
		return nil
	}
	return a.global.State()
}
