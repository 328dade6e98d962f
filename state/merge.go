package state

import "bytes"

// merge walks over two iterators as one. Where both have a key, over's value is
// the one that counts; a nil value there hides base's.
func merge(over, base Iterator, order Order) Iterator {
	return &merged{over: over, base: base, backward: bool(order), takeOver: true, takeBase: true}
}

type merged struct {
	over, base         Iterator
	backward           bool
	haveOver, haveBase bool
	takeOver, takeBase bool // the current entry is theirs: move on from it
}

func (m *merged) Next() bool {
	for {
		if m.takeOver {
			m.haveOver = m.over.Next()
		}
		if m.takeBase {
			m.haveBase = m.base.Next()
		}
		m.takeOver, m.takeBase = m.haveOver, m.haveBase
		if !m.haveOver && !m.haveBase || m.Err() != nil {
			m.haveOver, m.haveBase, m.takeOver, m.takeBase = false, false, false, false
			return false
		}
		if m.haveOver && m.haveBase {
			c := bytes.Compare(m.over.Key(), m.base.Key())
			if m.backward {
				c = -c
			}
			m.takeOver, m.takeBase = c <= 0, c >= 0
		}
		if !m.takeOver || m.over.Value() != nil {
			return true
		}
	}
}

func (m *merged) current() Iterator {
	if m.takeOver {
		return m.over
	}
	return m.base
}

func (m *merged) Key() []byte   { return m.current().Key() }
func (m *merged) Value() []byte { return m.current().Value() }

func (m *merged) Err() error {
	if err := m.over.Err(); err != nil {
		return err
	}
	return m.base.Err()
}

func (m *merged) Close() error {
	err := m.over.Close()
	if baseErr := m.base.Close(); err == nil {
		err = baseErr
	}
	return err
}
