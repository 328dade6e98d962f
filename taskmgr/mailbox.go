package taskmgr

import (
	"context"
	"sync"

	"github.com/odradek-go/odradek/membership"
)

// mailbox brings the thread the news of its membership loop and its updater. A
// letter wakes the thread from a poll. Of assignments only the latest counts, and
// losing all tasks makes an earlier one void.
type mailbox struct {
	mu   sync.Mutex
	news news
	any  bool
	wake context.CancelFunc
	gone chan struct{} // closed when the loop has ended
	end  error         // how it ended, readable once gone is closed
}

func newMailbox() *mailbox { return &mailbox{gone: make(chan struct{})} }

// news is what has come since the last look.
type news struct {
	assignment *membership.Assignment
	lost       error // why all tasks are lost; nil where they are not
	ready      *bool
	restored   []restoredTask
	left       bool // the loop has ended
}

type restoredTask struct {
	task *task
	err  error
}

func (m *mailbox) post(write func(*news)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	write(&m.news)
	m.any = true
	if m.wake != nil {
		m.wake()
	}
}

func (m *mailbox) assignment(a membership.Assignment) {
	m.post(func(n *news) { n.assignment = &a })
}

func (m *mailbox) lost(reason error) {
	m.post(func(n *news) { n.assignment, n.lost = nil, reason })
}

// putBack brings news again that was taken and came to nothing yet: an assignment, unless
// there is a newer one, and restored tasks.
func (m *mailbox) putBack(old news) {
	m.post(func(n *news) {
		if n.assignment == nil && n.lost == nil {
			n.assignment = old.assignment
		}
		n.restored = append(old.restored, n.restored...)
	})
}

func (m *mailbox) ready(ready bool) { m.post(func(n *news) { n.ready = &ready }) }

func (m *mailbox) restored(t *task, err error) {
	m.post(func(n *news) { n.restored = append(n.restored, restoredTask{t, err}) })
}

// left is told once, when the loop has ended.
func (m *mailbox) left(err error) {
	m.end = err
	close(m.gone)
	m.post(func(n *news) { n.left = true })
}

// waitLeft waits until the loop has ended and returns how.
func (m *mailbox) waitLeft(ctx context.Context) error {
	select {
	case <-m.gone:
		return m.end
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waiting says whether there is news.
func (m *mailbox) waiting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.any
}

// take returns the news, if there is any.
func (m *mailbox) take() (news, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, any := m.news, m.any
	m.news, m.any = news{}, false
	return n, any
}

// wakes has the next letter call wake. It returns false where one is there
// already.
func (m *mailbox) wakes(wake context.CancelFunc) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake = wake
	return !m.any
}
