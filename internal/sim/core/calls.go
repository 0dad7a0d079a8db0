package core

import (
	"slices"
	"strings"

	"github.com/payonce/payonce/internal/sim/journal"
)

// The operations that calls are counted and faults are matched by. Other is
// for calls that are none of them (endpoints, events, the account); it takes
// no faults.
const (
	OpCreate      = "create"
	OpConfirm     = "confirm"
	OpCapture     = "capture"
	OpQuery       = "query"
	OpClose       = "close"
	OpRefund      = "refund"
	OpRefundQuery = "refund_query"
	OpNotice      = "notice"
	OpBill        = "bill"
	OpOther       = "other"
)

// Operations are those that a fault may name.
var Operations = []string{OpCreate, OpConfirm, OpCapture, OpQuery, OpClose, OpRefund, OpRefundQuery, OpNotice, OpBill}

// callRow counts the received calls of one (channel, operation, number).
type callRow struct {
	Channel   string `json:"channel"`
	Operation string `json:"operation"`
	Number    string `json:"number"`
	Count     int64  `json:"count"`
}

type calls struct {
	table *journal.Table[callRow]
}

// CallCount is a line of the books' "calls".
type CallCount = callRow

// Count notes that a call was received, whatever becomes of it. It costs no
// wait: the count reaches the disk with the next batch.
func (w *World) Count(channel, operation, number string) {
	w.note(func() {
		key := channel + "\x00" + operation + "\x00" + number
		row := w.calls.table.Get(key)
		if row == nil {
			row = &callRow{Channel: channel, Operation: operation, Number: number}
		}
		row.Count++
		w.calls.table.Put(key, row)
	})
}

// Calls are the counters, sorted. Only inside View.
func (w *World) Calls() []CallCount {
	list := make([]CallCount, 0, len(w.calls.table.Rows))
	for _, row := range w.calls.table.Rows {
		list = append(list, *row)
	}
	slices.SortFunc(list, func(a, b CallCount) int {
		if c := strings.Compare(a.Channel, b.Channel); c != 0 {
			return c
		}
		if c := strings.Compare(a.Number, b.Number); c != 0 {
			return c
		}
		return strings.Compare(a.Operation, b.Operation)
	})
	return list
}
