package prove

import (
	"time"
)

// dice are the random numbers of a schedule.
type dice uint64

func (d *dice) next() uint64 {
	*d++
	return mix(uint64(*d))
}

func (d *dice) below(n int) int { return int(d.next() >> 11 % uint64(n)) }

// Random plays the schedule of a seed.
func Random(s Script, seed uint64) Report {
	d := dice(mix(seed) | 1)
	// Some schedules let a task run for long, others change at every step: both find
	// what the other one does not.
	sticky := []int{0, 50, 80, 95}[d.below(4)]
	ill := []int{1, 1, 4, 15}[d.below(4)] // how likely faults are
	w, _ := play(s, seed, func(w *world, moves []move) int {
		for i := range moves {
			if moves[i].v.fault() {
				moves[i].weight *= ill
			}
		}
		return draw(&d, w, moves, sticky)
	})
	return w.report()
}

func draw(d *dice, w *world, moves []move, sticky int) int {
	stay := d.below(100) < sticky
	sum, own := 0, 0
	for i := range moves {
		sum += moves[i].weight
		if moves[i].task != nil && moves[i].task == w.last {
			own += moves[i].weight
		}
	}
	if stay && own > 0 {
		sum = own
	}
	n := d.below(sum)
	for i := range moves {
		if stay && own > 0 && (moves[i].task == nil || moves[i].task != w.last) {
			continue
		}
		if n -= moves[i].weight; n < 0 {
			return i
		}
	}
	return len(moves) - 1
}

// Draft is the script of a seed: who wants what, and what may go wrong.
func Draft(seed uint64) Script {
	d := dice(mix(seed^0x5c) | 1)
	s := Script{Nodes: 1 + d.below(2), Faults: d.below(5), Crashes: d.below(3) / 2 * (1 + d.below(2)), Late: d.below(4) / 3, Times: d.below(5),
		Steps: 60 + d.below(120), Mute: d.below(8) == 0, Twice: d.below(3) == 0, TakeOver: d.below(2) == 0, Split: d.below(6) == 0}
	if d.below(4) == 0 {
		s.Expires = time.Duration(2+d.below(20)) * time.Minute
	}
	methods := []string{"qr", "page", "card"}
	for i := range 1 + d.below(3) {
		r := Request{Kind: "pay", Method: methods[d.below(3)], Tries: 1 + d.below(3), Async: d.below(6) == 0}
		if d.below(6) == 0 {
			r.Wait = 10 * time.Second
		}
		if s.Split {
			r.Part, r.Amount = string(rune('a'+i%2)), 400
		}
		s.Clients = append(s.Clients, r)
	}
	for range d.below(3) {
		kind := []string{"close", "cancel", "sync", "amend"}[d.below(4)]
		s.Clients = append(s.Clients, Request{Kind: kind, Tries: 1 + d.below(2)})
	}
	return s
}
