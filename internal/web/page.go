package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// assets are our own scripts and styles, and the version that is part of their
// addresses so that browsers may keep them.
type assets struct {
	files   map[string][]byte
	version string
}

func loadAssets() (assets, error) {
	a := assets{files: map[string][]byte{}}
	sum := sha256.New()
	entries, err := fs.ReadDir(files, "assets")
	if err != nil {
		return a, err
	}
	for _, e := range entries {
		b, err := files.ReadFile(path.Join("assets", e.Name()))
		if err != nil {
			return a, err
		}
		a.files[e.Name()] = b
		sum.Write(b)
	}
	a.version = hex.EncodeToString(sum.Sum(nil)[:6])
	return a, nil
}

var assetTypes = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

func (p *pages) asset(w http.ResponseWriter, r *http.Request) {
	b, ok := p.assets.files[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", assetTypes[path.Ext(r.PathValue("name"))])
	if r.URL.Query().Get("v") == p.assets.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(b) // the client may be gone
}

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"money": money,
	"short": func(s string) string { return s[max(0, len(s)-8):] },
	"clock": func(t time.Time) string { return t.UTC().Format("15:04 UTC") },
}).ParseFS(files, "templates/*.html"))

// frame is what every page knows beside its own data.
type frame struct {
	Lang    string
	Version string // of the assets
	Script  string
	Data    any
}

// T returns a text in the page's language.
func (f frame) T(key string) string { return text(f.Lang, key) }

// Moment is a point in time that a page's script counts down to.
func (f frame) Moment(t time.Time) moment { return moment{Time: t, Until: f.T("until")} }

type moment struct {
	time.Time
	Until string
}

// Query keeps a chosen language on our own addresses.
func (f frame) Query() string { return "?lang=" + f.Lang }

// Other is the address of the same page in the other language.
func (f frame) Other() string {
	if f.Lang == "zh" {
		return "?lang=en"
	}
	return "?lang=zh"
}

func (p *pages) frame(r *http.Request, script string, data any) frame {
	return frame{Lang: language(r), Version: p.assets.version, Script: script, Data: data}
}

// page sends a whole page. It is rendered before the first byte is sent, so a
// page is whole or an error.
func (p *pages) page(w http.ResponseWriter, r *http.Request, status int, name, script string, data any) {
	var buf bytes.Buffer
	f := p.frame(r, script, data)
	if err := templates.ExecuteTemplate(&buf, name, f); err != nil {
		p.Logger.Error("render page", "page", name, "error", err)
		http.Error(w, text(f.Lang, "fault"), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Language", f.Lang)
	w.Header().Add("Vary", "Accept-Language")
	w.WriteHeader(status)
	_, _ = buf.WriteTo(w) // the client may be gone
}

// state is what a page's script polls: the part of the page that changes, as
// the server renders it, and whether to go on asking.
type state struct {
	Phase string `json:"phase"`
	HTML  string `json:"html"`
	Final bool   `json:"final"`
	Quick bool   `json:"quick"` // something is under way: ask again soon
	// Now is the service's time in Unix milliseconds: what is counted down is
	// counted by this clock, not by the payer's.
	Now int64 `json:"now"`
	// Notice names the text that the page keeps showing while its phase lasts.
	Notice string `json:"notice,omitempty"`
	// Whole asks for the whole page: the next step is a form that leaves us, and
	// only the policy of its own page lets it.
	Whole bool `json:"whole,omitempty"`
}

func (p *pages) part(w http.ResponseWriter, r *http.Request, name string, s state, data any) {
	var buf bytes.Buffer
	if err := templates.ExecuteTemplate(&buf, name, p.frame(r, "", data)); err != nil {
		p.Logger.Error("render part of a page", "part", name, "error", err)
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	s.HTML, s.Now = buf.String(), p.Now().UnixMilli()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s) // the client may be gone
}

// scripted reports whether a page's script sent the request, which wants the
// state, or a plain form, which wants to be sent back to its page.
func scripted(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Accept"), "application/json")
}

// button is a form of one button on the page of an order.
type button struct{ Path, Order, Name, Value, Label, Text string }

// Button makes a button that stays on the page of the frame's order.
func (f frame) Button(path, name, value, label string) button {
	b := button{Path: path + f.Query(), Name: name, Value: value, Label: label, Text: f.T(label)}
	if s, ok := f.Data.(*story); ok {
		b.Order = s.Order.Key.OrderNo
	}
	return b
}
