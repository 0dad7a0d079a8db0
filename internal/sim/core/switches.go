package core

import (
	"fmt"
	"slices"
	"sync"
)

// Switch is a choice between behaviours of a channel that its public facts
// leave open, or that differ between merchants.
type Switch struct {
	Channel string   `json:"channel"`
	Name    string   `json:"switch"`
	Value   string   `json:"value"`
	Values  []string `json:"values"` // the first is what it begins with
}

// switches are kept in memory only, like faults.
type switches struct {
	mu   sync.Mutex
	list []*Switch
}

// AddSwitch declares a switch of a channel with its values, the first of which
// holds until another is set.
func (w *World) AddSwitch(channel, name string, values ...string) {
	w.switches.mu.Lock()
	defer w.switches.mu.Unlock()
	w.switches.list = append(w.switches.list, &Switch{Channel: channel, Name: name, Value: values[0], Values: values})
}

// Switch is the present value; "" for one that was never declared.
func (w *World) Switch(channel, name string) string {
	w.switches.mu.Lock()
	defer w.switches.mu.Unlock()
	if s := w.switches.find(channel, name); s != nil {
		return s.Value
	}
	return ""
}

// SetSwitch changes a switch; unknown names and values are ErrBad.
func (w *World) SetSwitch(channel, name, value string) (Switch, error) {
	w.switches.mu.Lock()
	defer w.switches.mu.Unlock()
	s := w.switches.find(channel, name)
	switch {
	case s == nil:
		return Switch{}, fmt.Errorf("%w: %s has no switch %q", ErrBad, channel, name)
	case !slices.Contains(s.Values, value):
		return Switch{}, fmt.Errorf("%w: %s is one of %v", ErrBad, name, s.Values)
	}
	s.Value = value
	return *s, nil
}

// Switches lists all of them in the order in which they were declared.
func (w *World) Switches() []Switch {
	w.switches.mu.Lock()
	defer w.switches.mu.Unlock()
	list := make([]Switch, 0, len(w.switches.list))
	for _, s := range w.switches.list {
		list = append(list, *s)
	}
	return list
}

// ResetSwitches puts all of them back to what they began with.
func (w *World) ResetSwitches() {
	w.switches.mu.Lock()
	defer w.switches.mu.Unlock()
	for _, s := range w.switches.list {
		s.Value = s.Values[0]
	}
}

func (s *switches) find(channel, name string) *Switch {
	for _, one := range s.list {
		if one.Channel == channel && one.Name == name {
			return one
		}
	}
	return nil
}
