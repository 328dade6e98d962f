package taskmgr

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
)

// TestFateOfTransactions: what a commit meets decides whether the member rejoins, the
// transaction is done again, or the thread fails.
func TestFateOfTransactions(t *testing.T) {
	for _, c := range []struct {
		err             error
		fenced, passing bool
	}{
		{err: kerr.ProducerFenced, fenced: true},
		{err: kerr.InvalidProducerEpoch, fenced: true},
		{err: kerr.InvalidProducerIDMapping, fenced: true},
		{err: kerr.TransactionAbortable, passing: true},
		{err: kerr.InvalidTxnState, passing: true},
		{err: kerr.ConcurrentTransactions, passing: true},
		{err: kerr.NotCoordinator, passing: true},
		{err: kgo.ErrRecordTimeout, passing: true},
		{err: &net.OpError{Op: "dial", Err: errors.New("refused")}, passing: true},
		{err: kerr.MessageTooLarge},
		{err: kerr.TransactionalIDAuthorizationFailed},
		{err: kerr.InvalidTransactionTimeout},
		{err: kgo.ErrClientClosed},
		{err: errFenced},
	} {
		err := fmt.Errorf("wrapped: %w", c.err)
		if producerFenced(err) != c.fenced || passing(err) != c.passing {
			t.Errorf("%v: fenced %v, passing %v", c.err, producerFenced(err), passing(err))
		}
	}
}

// TestStaleEpochInTransaction: before version 6 a stale epoch has no code of its own.
func TestStaleEpochInTransaction(t *testing.T) {
	for _, c := range []struct {
		err     *kerr.Error
		version int16
		want    error
	}{
		{kerr.IllegalGeneration, 4, errStaleEpoch},
		{kerr.IllegalGeneration, 5, errStaleEpoch},
		{kerr.IllegalGeneration, 6, errFenced},
		{kerr.StaleMemberEpoch, 6, errStaleEpoch},
		{kerr.UnknownMemberID, 4, errFenced},
		{kerr.UnknownMemberID, 6, errFenced},
		{kerr.InvalidProducerEpoch, 6, kerr.InvalidProducerEpoch},
	} {
		if err := classifyInTransaction(c.err.Code, c.version); !errors.Is(err, c.want) {
			t.Errorf("%v in version %d: %v", c.err, c.version, err)
		}
	}
	if err := classifyInTransaction(0, 6); err != nil {
		t.Error(err)
	}
}

// TestAnswersToCommit: the worst answer counts, and one that is missing is an error.
func TestAnswersToCommit(t *testing.T) {
	a, b := &input{topic: "a", partition: 1}, &input{topic: "b", partition: 1}
	whole := awaitAnswers([]*input{a, b})
	for _, in := range []*input{b, a} {
		if got, ok := whole.of(in.topic, in.partition, nil); !ok || got != in {
			t.Errorf("the answer for %s is for %v", in.topic, got)
		}
	}
	if _, ok := whole.of("a", 1, nil); ok {
		t.Error("a second answer counts")
	}
	if err := whole.err(); err != nil {
		t.Error(err)
	}

	part := awaitAnswers([]*input{a, b})
	part.of("a", 1, errStaleEpoch)
	var ce *CommitError
	if err := part.err(); !errors.Is(err, errStaleEpoch) || !errors.As(err, &ce) || ce.Topic != "a" {
		t.Errorf("stale and missing: %v", err)
	}
	missing := awaitAnswers([]*input{a})
	if err := missing.err(); !errors.As(err, &ce) || ce.Topic != "a" {
		t.Errorf("missing: %v", err)
	}
}

// TestMailboxPutBack: news that came to nothing comes again, unless it is out of date.
func TestMailboxPutBack(t *testing.T) {
	m := newMailbox()
	old := news{assignment: &membership.Assignment{LocalEpoch: 1}, restored: []restoredTask{{task: &task{}}}}
	m.putBack(old)
	if n, any := m.take(); !any || n.assignment.LocalEpoch != 1 || len(n.restored) != 1 {
		t.Errorf("put back: %+v", n)
	}
	m.assignment(membership.Assignment{LocalEpoch: 2})
	m.putBack(old)
	if n, _ := m.take(); n.assignment.LocalEpoch != 2 || len(n.restored) != 1 {
		t.Errorf("behind a newer assignment: %+v", n)
	}
	m.lost(errFenced)
	m.putBack(old)
	if n, _ := m.take(); n.assignment != nil || n.lost == nil {
		t.Errorf("after all was lost: %+v", n)
	}
}
