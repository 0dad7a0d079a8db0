package main

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// newObserver counts what the engine reports. Labels are names of channels and
// words of closed sets, never an order.
func newObserver(r prometheus.Registerer) func(event, channel, detail string) {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	calls := vec("payonce_channel_calls_total", "Calls to channels by step and by what their answer means.", "channel", "step", "answer")
	payments := vec("payonce_payment_outcomes_total", "States of payments after an answer or notice was applied.", "channel", "status")
	alarms := vec("payonce_alarms_total", "Facts that people must hear of.", "channel", "alarm")
	others := vec("payonce_events_total", "Other events of the engine.", "channel", "event")
	return func(event, channel, detail string) {
		switch step, isCall := strings.CutPrefix(event, "call."); {
		case isCall:
			calls.WithLabelValues(channel, step, detail).Inc()
		case event == "payment":
			payments.WithLabelValues(channel, detail).Inc()
		case event == "alarm" && detail == "":
		case event == "alarm":
			alarms.WithLabelValues(channel, detail).Inc()
		default:
			others.WithLabelValues(channel, event).Inc()
		}
	}
}

// newNoticeObserver counts the notices of channels by what became of them.
func newNoticeObserver(r prometheus.Registerer) func(channel, outcome string) {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "payonce_notices_total", Help: "Notices of channels by outcome: stored, duplicate, parked, refused, not-stored."},
		[]string{"channel", "outcome"})
	r.MustRegister(c)
	return func(channel, outcome string) { c.WithLabelValues(channel, outcome).Inc() }
}
