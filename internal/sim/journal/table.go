package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Table holds the rows of one kind in memory and journals each change of
// them. It has no lock of its own: the caller changes and reads it under one.
type Table[T any] struct {
	kind string
	j    *Journal
	Rows map[string]*T
}

// NewTable registers a kind of record. It must be called before Open.
func NewTable[T any](j *Journal, kind string) *Table[T] {
	t := &Table[T]{kind: kind, j: j, Rows: map[string]*T{}}
	j.kinds[kind] = t
	return t
}

// Get returns the row or nil.
func (t *Table[T]) Get(id string) *T { return t.Rows[id] }

// Put stores the row as it now is.
func (t *Table[T]) Put(id string, row *T) {
	b, err := json.Marshal(row)
	if err != nil {
		// Rows are plain structs of ours: this is a programming error.
		panic(fmt.Sprintf("journal: %s %s: %v", t.kind, id, err))
	}
	t.Rows[id] = row
	t.j.append(t.kind, id, b)
}

// Delete forgets the row.
func (t *Table[T]) Delete(id string) {
	if _, ok := t.Rows[id]; !ok {
		return
	}
	delete(t.Rows, id)
	t.j.append(t.kind, id, nil)
}

func (t *Table[T]) load(id string, value []byte, _ Ref) error {
	if len(value) == 0 {
		delete(t.Rows, id)
		return nil
	}
	row := new(T)
	if err := json.Unmarshal(value, row); err != nil {
		return fmt.Errorf("journal: %s %s: %w", t.kind, id, err)
	}
	t.Rows[id] = row
	return nil
}

// Blobs are values that stay on disk: only their place is kept in memory.
// A value must be one line (compact JSON is).
type Blobs struct {
	kind string
	j    *Journal
	refs map[string]Ref
}

// NewBlobs registers a kind of value. It must be called before Open.
func NewBlobs(j *Journal, kind string) *Blobs {
	b := &Blobs{kind: kind, j: j, refs: map[string]Ref{}}
	j.kinds[kind] = b
	return b
}

// Put stores a value that never changes.
func (b *Blobs) Put(id string, value []byte) {
	if len(value) == 0 || bytes.IndexByte(value, '\n') >= 0 {
		panic(fmt.Sprintf("journal: %s %s: a blob is one line that is not empty", b.kind, id))
	}
	b.refs[id] = b.j.append(b.kind, id, value)
}

// Ref returns the place of a value; the zero Ref when there is none.
func (b *Blobs) Ref(id string) Ref { return b.refs[id] }

// Delete forgets the value.
func (b *Blobs) Delete(id string) {
	if _, ok := b.refs[id]; !ok {
		return
	}
	delete(b.refs, id)
	b.j.append(b.kind, id, nil)
}

func (b *Blobs) load(id string, value []byte, ref Ref) error {
	if len(value) == 0 {
		delete(b.refs, id)
		return nil
	}
	b.refs[id] = ref
	return nil
}

// eachRecord splits a whole batch that begins at base.
func eachRecord(batch []byte, base int64, fn func(string, string, []byte, Ref) error) error {
	for pos := 0; pos < len(batch); {
		n := bytes.IndexByte(batch[pos:], '\n')
		line := batch[pos : pos+n]
		kind, rest, ok1 := bytes.Cut(line, []byte{'\t'})
		quoted, value, ok2 := bytes.Cut(rest, []byte{'\t'})
		id, err := strconv.Unquote(string(quoted))
		if !ok1 || !ok2 || err != nil {
			return fmt.Errorf("journal: malformed record at byte %d", base+int64(pos))
		}
		off := base + int64(pos+n-len(value))
		if err := fn(string(kind), id, value, Ref{off: off, len: len(value)}); err != nil {
			return err
		}
		pos += n + 1
	}
	return nil
}

// liveSet is where the newest value of each row lies.
type liveSet struct {
	refs  map[string]Ref // kind, tab, id
	bytes int64
}

func findLive(f *os.File) (liveSet, error) {
	live := liveSet{refs: map[string]Ref{}}
	_, err := scan(f, func(kind, id string, value []byte, ref Ref) error {
		key := kind + "\t" + id
		if old, ok := live.refs[key]; ok {
			live.bytes -= int64(old.len + len(key))
			delete(live.refs, key)
		}
		if len(value) > 0 {
			live.refs[key] = ref
			live.bytes += int64(len(value) + len(key))
		}
		return nil
	})
	return live, err
}

// compact writes the live records to a new file and puts it in the place of
// the old one. A crash leaves either of them whole.
func compact(path string, live liveSet) error {
	old, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("journal: compact: %w", err)
	}
	defer old.Close()
	tmp, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("journal: compact: %w", err)
	}
	defer tmp.Close()
	if _, err := tmp.WriteString(header); err != nil {
		return fmt.Errorf("journal: compact: %w", err)
	}
	var batch []byte
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		_, err := tmp.Write(appendCommit(batch))
		batch = batch[:0]
		return err
	}
	_, err = scan(old, func(kind, id string, value []byte, ref Ref) error {
		if live.refs[kind+"\t"+id] != ref || len(value) == 0 {
			return nil
		}
		batch = append(append(batch, kind...), '\t')
		batch = append(strconv.AppendQuote(batch, id), '\t')
		batch = append(append(batch, value...), '\n')
		if len(batch) > 1<<20 {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("journal: compact: %w", err)
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	defer d.Close()
	// Some systems cannot sync a folder; the rename is then as durable as
	// they make it.
	_ = d.Sync()
	return nil
}
