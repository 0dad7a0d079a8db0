package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/payonce/payonce/internal/sim/core"
)

// maxControlBody bounds a control request.
const maxControlBody = 64 << 10

// handler answers with a status and an object, or with an error.
type handler func(r *http.Request) (int, any, error)

func (s *Sim) routes() http.Handler {
	table := map[string]map[string]handler{
		"/_sim/clock":          {"GET": s.getClock, "POST": s.moveClock},
		"/_sim/books":          {"GET": s.books},
		"/_sim/pay":            {"POST": s.pay},
		"/_sim/refund":         {"POST": s.refund},
		"/_sim/dispute":        {"POST": s.dispute},
		"/_sim/charge":         {"POST": s.charge},
		"/_sim/faults":         {"GET": s.listFaults, "POST": s.addFault, "DELETE": s.deleteFaults},
		"/_sim/faults/{id}":    {"DELETE": s.deleteFaults},
		"/_sim/switches":       {"GET": s.listSwitches, "POST": s.setSwitch, "DELETE": s.resetSwitches},
		"/_sim/notices/resend": {"POST": s.resend},
		"/_sim/credentials":    {"GET": s.credentials},
	}
	mux := http.NewServeMux()
	for path, methods := range table {
		mux.HandleFunc(path, func(rw http.ResponseWriter, r *http.Request) {
			h, ok := methods[r.Method]
			if !ok {
				writeJSON(rw, http.StatusMethodNotAllowed, problem{"method not allowed"})
				return
			}
			r.Body = http.MaxBytesReader(rw, r.Body, maxControlBody)
			status, v, err := h(r)
			if err != nil {
				status, v = statusOf(err), problem{err.Error()}
			}
			writeJSON(rw, status, v)
		})
	}
	mux.HandleFunc("GET /_sim/pages/{channel}/{id}", s.showPage)
	mux.HandleFunc("POST /_sim/pages/{channel}/{id}", s.pressButton)
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		writeJSON(rw, http.StatusNotFound, problem{"nothing is simulated at " + r.URL.Path})
	})
	return mux
}

type problem struct {
	Error string `json:"error"`
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, core.ErrUnknown):
		return http.StatusNotFound
	case errors.Is(err, core.ErrNotPayable):
		return http.StatusConflict
	case errors.Is(err, core.ErrBad):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

func writeJSON(rw http.ResponseWriter, status int, v any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(v) // a client that is gone needs no answer
}

// decode reads one JSON object; unknown members, other types and anything
// behind the object are refused.
func decode(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", core.ErrBad, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: one JSON object is expected", core.ErrBad)
	}
	return nil
}

func (s *Sim) channelOf(name string) (channel, error) {
	if ch, ok := s.channels[name]; ok {
		return ch, nil
	}
	return nil, fmt.Errorf("%w: unknown channel %q", core.ErrBad, name)
}

type clockState struct {
	Now    string `json:"now"`
	Offset int64  `json:"offset_s"`
}

func (s *Sim) clockState() clockState {
	return clockState{Now: s.w.Now().Format("2006-01-02T15:04:05.000000Z"), Offset: s.w.Offset()}
}

func (s *Sim) getClock(*http.Request) (int, any, error) { return http.StatusOK, s.clockState(), nil }

func (s *Sim) moveClock(r *http.Request) (int, any, error) {
	var in struct {
		Advance *int64 `json:"advance_s"`
	}
	if err := decode(r, &in); err != nil {
		return 0, nil, err
	}
	if in.Advance == nil {
		return 0, nil, fmt.Errorf("%w: advance_s is required", core.ErrBad)
	}
	if err := s.w.Advance(r.Context(), *in.Advance); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, s.clockState(), nil
}

type noticeLine struct {
	Channel      string `json:"channel"`
	Number       string `json:"number"`
	Event        string `json:"event_id"`
	Type         string `json:"type"`
	Deliveries   int    `json:"deliveries"`
	Acknowledged bool   `json:"acknowledged"`
}

func (s *Sim) books(*http.Request) (int, any, error) {
	out := struct {
		Charges []core.Charge    `json:"charges"`
		Calls   []core.CallCount `json:"calls"`
		Notices []noticeLine     `json:"notices"`
	}{Charges: []core.Charge{}, Notices: []noticeLine{}}
	pos := s.w.View(func() {
		for _, name := range s.channelNames() {
			out.Charges = append(out.Charges, s.channels[name].Charges()...)
		}
		out.Calls = s.w.Calls()
		for _, n := range s.w.Notices() {
			out.Notices = append(out.Notices, noticeLine{n.Channel, n.Number, n.Event, n.Type, n.Deliveries, n.Acknowledged})
		}
	})
	return http.StatusOK, out, s.w.Wait(pos)
}

func (s *Sim) channelNames() []string {
	names := make([]string, 0, len(s.channels))
	for name := range s.channels {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *Sim) pay(r *http.Request) (int, any, error) {
	var in struct {
		Channel string `json:"channel"`
		Number  string `json:"number"`
		Outcome string `json:"outcome"`
		Amount  int64  `json:"amount"`
		Force   bool   `json:"force"`
	}
	if err := decode(r, &in); err != nil {
		return 0, nil, err
	}
	ch, err := s.channelOf(in.Channel)
	switch {
	case err != nil:
		return 0, nil, err
	case in.Outcome != "" && !slices.Contains(core.Outcomes, in.Outcome):
		return 0, nil, fmt.Errorf("%w: outcome must be one of %v", core.ErrBad, core.Outcomes)
	case in.Amount < 0:
		return 0, nil, fmt.Errorf("%w: amount must be positive", core.ErrBad)
	}
	line, err := ch.Pay(core.PayOrder{Number: in.Number, Outcome: in.Outcome, Amount: in.Amount, Force: in.Force})
	return http.StatusOK, line, err
}

func (s *Sim) refund(r *http.Request) (int, any, error) {
	var in struct {
		Channel string `json:"channel"`
		Number  string `json:"number"`
		Amount  int64  `json:"amount"`
	}
	if err := decode(r, &in); err != nil {
		return 0, nil, err
	}
	ch, err := s.channelOf(in.Channel)
	if err != nil {
		return 0, nil, err
	}
	if in.Amount < 0 {
		return 0, nil, fmt.Errorf("%w: amount must be positive", core.ErrBad)
	}
	line, err := ch.Refund(in.Number, in.Amount)
	return http.StatusOK, line, err
}

func (s *Sim) dispute(r *http.Request) (int, any, error) {
	var in struct {
		Channel string `json:"channel"`
		Number  string `json:"number"`
	}
	if err := decode(r, &in); err != nil {
		return 0, nil, err
	}
	ch, err := s.channelOf(in.Channel)
	if err != nil {
		return 0, nil, err
	}
	line, err := ch.Dispute(in.Number)
	return http.StatusOK, line, err
}

func (s *Sim) charge(r *http.Request) (int, any, error) {
	var in struct {
		Channel  string `json:"channel"`
		Amount   int64  `json:"amount"`
		Currency string `json:"currency"`
		Number   string `json:"number"`
	}
	if err := decode(r, &in); err != nil {
		return 0, nil, err
	}
	ch, err := s.channelOf(in.Channel)
	if err != nil {
		return 0, nil, err
	}
	line, err := ch.Charge(in.Amount, in.Currency, in.Number)
	return http.StatusOK, line, err
}

func (s *Sim) addFault(r *http.Request) (int, any, error) {
	in := struct {
		Channel   string `json:"channel"`
		Operation string `json:"operation"`
		Fault     string `json:"fault"`
		Times     int    `json:"times"`
		DelayMS   int64  `json:"delay_ms"`
		Number    string `json:"number"`
	}{Times: 1}
	if err := decode(r, &in); err != nil {
		return 0, nil, err
	}
	ch, err := s.channelOf(in.Channel)
	if err != nil {
		return 0, nil, err
	}
	f := core.Fault{Channel: in.Channel, Operation: in.Operation, Fault: in.Fault, Times: in.Times, DelayMS: in.DelayMS, Number: in.Number}
	if err := f.Check(); err != nil {
		return 0, nil, err
	}
	if err := ch.CheckFault(&f); err != nil {
		return 0, nil, err
	}
	id, err := s.w.AddFault(f)
	return http.StatusCreated, map[string]string{"id": id}, err
}

func (s *Sim) listFaults(*http.Request) (int, any, error) {
	return http.StatusOK, map[string]any{"faults": s.w.Faults()}, nil
}

func (s *Sim) deleteFaults(r *http.Request) (int, any, error) {
	id := r.PathValue("id")
	n := s.w.DeleteFaults(id)
	if id != "" && n == 0 {
		return 0, nil, fmt.Errorf("%w: fault %q", core.ErrUnknown, id)
	}
	return http.StatusOK, map[string]int{"deleted": n}, nil
}

func (s *Sim) listSwitches(*http.Request) (int, any, error) {
	return http.StatusOK, map[string]any{"switches": s.w.Switches()}, nil
}

func (s *Sim) setSwitch(r *http.Request) (int, any, error) {
	var in struct {
		Channel string `json:"channel"`
		Switch  string `json:"switch"`
		Value   string `json:"value"`
	}
	if err := decode(r, &in); err != nil {
		return 0, nil, err
	}
	out, err := s.w.SetSwitch(in.Channel, in.Switch, in.Value)
	return http.StatusOK, out, err
}

func (s *Sim) resetSwitches(r *http.Request) (int, any, error) {
	s.w.ResetSwitches()
	return s.listSwitches(r)
}

func (s *Sim) resend(r *http.Request) (int, any, error) {
	var in struct {
		Number string `json:"number"`
	}
	if err := decode(r, &in); err != nil {
		return 0, nil, err
	}
	n, err := s.w.Resend(in.Number, func(name string, n core.Notice) map[string]core.Target {
		return s.channels[name].Targets(n)
	})
	if errors.Is(err, core.ErrUnknown) {
		err = fmt.Errorf("%w: no notice of %q", core.ErrUnknown, in.Number)
	}
	return http.StatusOK, map[string]int{"resent": n}, err
}
