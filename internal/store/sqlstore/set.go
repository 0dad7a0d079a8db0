package sqlstore

import "fmt"

// set is one table's part in a picture: the rows of an order as they were read,
// and what the decision made of them.
type set[T any] struct {
	rows           *rows[T]
	before         map[*T][]any
	added, changed []*T
}

// saw keeps a row as it was read.
func (s *set[T]) saw(v *T) {
	if s.before == nil {
		s.before = make(map[*T][]any)
	}
	s.before[v] = s.rows.values(v)
}

// compare finds out what became of the rows. None may be left out: they are never
// deleted.
func (s *set[T]) compare(now []*T) error {
	known := 0
	for _, v := range now {
		before, ok := s.before[v]
		if !ok {
			s.added = append(s.added, v)
			continue
		}
		known++
		changed, err := differs(s.rows, before, v)
		if err != nil {
			return err
		}
		if changed {
			s.changed = append(s.changed, v)
		}
	}
	if known != len(s.before) {
		return refusal{fmt.Errorf("a row of %s was left out, or is there twice", s.rows.table.Name)}
	}
	return nil
}

func (s *set[T]) moved() bool { return len(s.added)+len(s.changed) > 0 }
