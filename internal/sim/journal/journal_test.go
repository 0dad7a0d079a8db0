package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

type row struct {
	N    int    `json:"n"`
	Text string `json:"text,omitempty"`
}

type book struct {
	j     *Journal
	rows  *Table[row]
	blobs *Blobs
}

func open(t *testing.T, dir string) book {
	t.Helper()
	j := New(new(sync.Mutex))
	b := book{j: j, rows: NewTable[row](j, "row"), blobs: NewBlobs(j, "blob")}
	if err := j.Open(dir); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b book) put(t *testing.T, id string, n int) {
	t.Helper()
	b.rows.Put(id, &row{N: n})
	if err := b.j.Wait(b.j.Seal()); err != nil {
		t.Fatal(err)
	}
}

func (b book) close(t *testing.T) {
	t.Helper()
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRowsComeBack(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	b.put(t, "a", 1)
	b.put(t, "strange\tid\n\"", 2)
	b.put(t, "gone", 3)
	b.rows.Delete("gone")
	b.put(t, "a", 4)
	b.blobs.Put("x", []byte(`{"body":1}`))
	b.close(t) // also writes what nobody waited for
	b = open(t, dir)
	defer b.close(t)
	if len(b.rows.Rows) != 2 || b.rows.Get("a").N != 4 || b.rows.Get("strange\tid\n\"").N != 2 {
		t.Fatalf("rows: %v", b.rows.Rows)
	}
	if v, err := b.j.Read(b.blobs.Ref("x")); err != nil || string(v) != `{"body":1}` {
		t.Fatalf("blob: %s %v", v, err)
	}
	b.blobs.Put("y", []byte("later"))
	if err := b.j.Wait(b.j.Seal()); err != nil {
		t.Fatal(err)
	}
	if v, err := b.j.Read(b.blobs.Ref("y")); err != nil || string(v) != "later" {
		t.Fatalf("blob of this run: %s %v", v, err)
	}
}

// TestTornBatchIsRemoved cuts the file at every byte of its last batch: the
// earlier batches stay, the torn one goes as a whole.
func TestTornBatchIsRemoved(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	b.put(t, "a", 1)
	path := filepath.Join(dir, fileName)
	before, _ := os.ReadFile(path)
	b.rows.Put("b", &row{N: 2})
	b.put(t, "c", 3)
	b.close(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(before); cut < len(whole); cut++ {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		b := open(t, dir)
		if len(b.rows.Rows) != 1 || b.rows.Get("a").N != 1 {
			t.Fatalf("cut at %d: %v", cut, b.rows.Rows)
		}
		b.put(t, "d", 4)
		b.close(t)
		b = open(t, dir)
		if len(b.rows.Rows) != 2 {
			t.Fatalf("cut at %d: writing went on wrongly: %v", cut, b.rows.Rows)
		}
		b.close(t)
	}
}

func TestDamageInTheMiddleIsAnError(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	b.put(t, "a", 1)
	b.put(t, "b", 2)
	b.close(t)
	path := filepath.Join(dir, fileName)
	text, _ := os.ReadFile(path)
	text = bytes.Replace(text, []byte(`{"n":1}`), []byte(`{"n":7}`), 1)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	j := New(new(sync.Mutex))
	NewTable[row](j, "row")
	if err := j.Open(dir); err == nil {
		t.Fatal("a changed record passes")
	}
}

func TestFolderIsExclusive(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	defer b.close(t)
	if err := New(new(sync.Mutex)).Open(dir); err == nil {
		t.Fatal("two journals on one folder")
	}
}

func TestDeadRecordsGoAtOpen(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	filler := string(bytes.Repeat([]byte("x"), 10_000))
	for n := range 1000 {
		b.rows.Put(fmt.Sprint("k", n%10), &row{N: n, Text: filler})
	}
	b.blobs.Put("x", []byte("kept"))
	b.close(t)
	path := filepath.Join(dir, fileName)
	before, _ := os.Stat(path)
	b = open(t, dir)
	defer b.close(t)
	after, _ := os.Stat(path)
	if before.Size() < compactAbove || after.Size() > before.Size()/10 {
		t.Fatalf("size %d became %d", before.Size(), after.Size())
	}
	if len(b.rows.Rows) != 10 || b.rows.Get("k9").N != 999 {
		t.Fatal("rows were lost")
	}
	if v, err := b.j.Read(b.blobs.Ref("x")); err != nil || string(v) != "kept" {
		t.Fatalf("blob: %s %v", v, err)
	}
}

func TestWaitEndsWhenTheJournalDoes(t *testing.T) {
	b := open(t, t.TempDir())
	b.close(t)
	b.rows.Put("late", &row{})
	if err := b.j.Wait(b.j.Seal()); err == nil {
		t.Fatal("a record after Close is durable")
	}
}

// TestStepIsNeverCut: while a step lasts the committer may not take half of
// it, however much it is asked to hurry. Values can be read all the same.
func TestStepIsNeverCut(t *testing.T) {
	dir := t.TempDir()
	var step sync.Mutex
	j := New(&step)
	rows, blobs := NewTable[row](j, "row"), NewBlobs(j, "blob")
	if err := j.Open(dir); err != nil {
		t.Fatal(err)
	}
	step.Lock()
	rows.Put("charge", &row{N: 1})
	blobs.Put("x", []byte("early"))
	durable := make(chan error, 1)
	pos := j.Seal()
	go func() { durable <- j.Wait(pos) }()
	select {
	case <-durable:
		t.Fatal("half of a step is on disk")
	case <-time.After(4 * lazyFlush): // nothing may happen; there is no signal for that
	}
	if v, err := j.Read(blobs.Ref("x")); err != nil || string(v) != "early" {
		t.Fatalf("pending blob: %s %v", v, err)
	}
	rows.Put("key", &row{N: 1})
	step.Unlock()
	if err := <-durable; err != nil {
		t.Fatal(err)
	}
	if v, err := j.Read(blobs.Ref("x")); err != nil || string(v) != "early" {
		t.Fatalf("written blob: %s %v", v, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(filepath.Join(dir, fileName))
	if n := bytes.Count(text, []byte("\n#")); n != 1 {
		t.Fatalf("the step became %d batches", n)
	}
}
