// Package journal keeps the simulator's books on disk: an append-only file of
// records, written in checksummed batches and fsynced in groups, from which
// the tables in memory are rebuilt when the folder is opened again.
//
// A batch is all or nothing and never cuts a step of the caller in two. What the process had been told is durable (Wait
// returned nil) is there after kill -9 or power loss; a batch that was cut
// off in the middle is removed when the file is opened. The file is rewritten
// without superseded records at Open when more than half of it is dead.
//
// The package must not know what the records mean, nor of channels, HTTP or
// clocks.
package journal

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

const (
	fileName = "books.journal"
	header   = "payonce-sim-journal 1\n"

	// lazyFlush is how long a record that nobody waits for may stay in memory.
	lazyFlush = 50 * time.Millisecond

	// compactAbove is the file size in bytes from which Open looks for dead
	// records.
	compactAbove = 4 << 20
)

// ErrClosed is returned for records that could not be made durable because
// the journal was closed.
var ErrClosed = errors.New("journal: closed")

// Ref says where a record's value lies in the file. The zero Ref is no value.
type Ref struct {
	off int64
	len int
}

// loader is one kind of record: a Table or Blobs.
type loader interface {
	load(id string, value []byte, ref Ref) error
}

// Journal is the file and the records on their way to it. Tables are made
// with NewTable and NewBlobs before Open. Append-like methods may be called
// from several goroutines; the tables themselves need the caller's lock.
type Journal struct {
	kinds map[string]loader
	file  *os.File
	lock  *os.File

	step sync.Locker // held by the caller for as long as a step lasts

	mu       sync.Mutex
	synced   *sync.Cond
	pending  []byte // records since the last batch was taken
	base     int64  // where pending will begin in the file
	inFlight []byte // the batch that is being written; it ends at base
	appended uint64 // number of records ever appended
	urgent   uint64 // newest record that somebody may wait for
	durable  uint64 // newest record on disk
	armed    bool   // a lazy flush is under way
	err      error

	kick chan struct{}
	stop chan struct{}
	done chan struct{}
}

// New returns a journal without a file, to register tables on. What the caller
// appends while it holds step goes to disk together or not at all.
func New(step sync.Locker) *Journal {
	j := &Journal{
		step:  step,
		kinds: map[string]loader{},
		kick:  make(chan struct{}, 1),
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	j.synced = sync.NewCond(&j.mu)
	return j
}

// Open takes the folder for this process, replays the file into the tables
// and starts the committer. A second process on the same folder is refused.
func (j *Journal) Open(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	lock, err := lockFolder(filepath.Join(dir, "lock"))
	if err != nil {
		return fmt.Errorf("journal: folder %s is in use: %w", dir, err)
	}
	path := filepath.Join(dir, fileName)
	file, end, err := openFile(path)
	if err != nil {
		lock.Close()
		return err
	}
	j.file, j.lock, j.base = file, lock, end
	if _, err := scan(file, j.apply); err != nil {
		file.Close()
		lock.Close()
		return err
	}
	if _, err := file.Seek(end, 0); err != nil {
		file.Close()
		lock.Close()
		return fmt.Errorf("journal: %w", err)
	}
	go j.commit()
	return nil
}

func (j *Journal) apply(kind, id string, value []byte, ref Ref) error {
	l, ok := j.kinds[kind]
	if !ok {
		return fmt.Errorf("journal: record of unknown kind %q: written by a newer version?", kind)
	}
	return l.load(id, value, ref)
}

// append adds one record. An empty value means that the row is gone.
func (j *Journal) append(kind, id string, value []byte) Ref {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending = append(j.pending, kind...)
	j.pending = append(j.pending, '\t')
	j.pending = strconv.AppendQuote(j.pending, id)
	j.pending = append(j.pending, '\t')
	ref := Ref{off: j.base + int64(len(j.pending)), len: len(value)}
	j.pending = append(j.pending, value...)
	j.pending = append(j.pending, '\n')
	j.appended++
	if !j.armed {
		j.armed = true
		time.AfterFunc(lazyFlush, j.wake)
	}
	return ref
}

func (j *Journal) wake() {
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// Seal asks for everything appended so far to be made durable soon and
// returns the position to give to Wait.
func (j *Journal) Seal() uint64 {
	j.mu.Lock()
	j.urgent = j.appended
	pos := j.urgent
	late := j.durable < pos
	j.mu.Unlock()
	if late {
		j.wake()
	}
	return pos
}

// Sealed is the newest position that Seal has returned: whoever shows state
// to the outside waits for it first.
func (j *Journal) Sealed() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.urgent
}

// Appended counts the records appended since Open.
func (j *Journal) Appended() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.appended
}

// Wait returns nil when everything up to pos is on disk, and the reason when
// it never will be.
func (j *Journal) Wait(pos uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.durable < pos && j.err == nil {
		j.synced.Wait()
	}
	if j.durable >= pos {
		return nil
	}
	return j.err
}

// Read returns the value at ref, also one that is not on disk yet.
func (j *Journal) Read(ref Ref) ([]byte, error) {
	b := make([]byte, ref.len)
	if j.copyPending(b, ref.off) {
		return b, nil
	}
	if _, err := j.file.ReadAt(b, ref.off); err != nil {
		return nil, fmt.Errorf("journal: read back: %w", err)
	}
	return b, nil
}

// copyPending fills b from the buffers when they hold what is at off.
func (j *Journal) copyPending(b []byte, off int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	from, buffer := off-j.base, j.pending
	if from < 0 {
		from, buffer = off-(j.base-int64(len(j.inFlight))), j.inFlight
	}
	if from < 0 || from+int64(len(b)) > int64(len(buffer)) {
		return false
	}
	copy(b, buffer[from:])
	return true
}

// Close writes what is pending, stops the committer and frees the folder.
func (j *Journal) Close() error {
	close(j.stop)
	<-j.done
	err := j.file.Close()
	return errors.Join(err, j.lock.Close())
}

// commit is the only writer. It never waits on purpose: it takes whatever has
// queued while the last batch was on its way.
func (j *Journal) commit() {
	defer close(j.done)
	for {
		stopping := false
		select {
		case <-j.kick:
		case <-j.stop:
			stopping = true
		}
		batch, upTo := j.take()
		var err error
		if len(batch) > 0 {
			err = write(j.file, batch)
		}
		if err == nil && stopping {
			err = ErrClosed
		}
		j.finish(upTo, err)
		if err != nil {
			return
		}
	}
}

func (j *Journal) take() ([]byte, uint64) {
	j.step.Lock()
	defer j.step.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.armed = false
	if len(j.pending) == 0 {
		return nil, j.appended
	}
	batch := appendCommit(j.pending)
	j.pending, j.inFlight = nil, batch
	j.base += int64(len(batch))
	return batch, j.appended
}

func (j *Journal) finish(upTo uint64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil || errors.Is(err, ErrClosed) {
		j.durable = upTo
	}
	j.err, j.inFlight = err, nil
	j.synced.Broadcast()
}

// appendCommit ends a batch with its checksum and length.
func appendCommit(batch []byte) []byte {
	sum := crc32.ChecksumIEEE(batch)
	return fmt.Appendf(batch, "#%08x %d\n", sum, len(batch))
}

func write(f *os.File, b []byte) error {
	if _, err := f.Write(b); err != nil {
		return fmt.Errorf("journal: write: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("journal: sync: %w", err)
	}
	return nil
}

// openFile makes or opens the file, cuts off an unfinished batch and, when
// most of it is dead, rewrites it. It returns the place to go on writing.
func openFile(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("journal: %w", err)
	}
	end, err := repair(f)
	if err == nil && end > compactAbove {
		var live liveSet
		if live, err = findLive(f); err == nil && live.bytes*2 < end {
			f.Close()
			if err = compact(path, live); err == nil {
				return openFile(path)
			}
		}
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, end, nil
}

// repair returns the end of the last whole batch and removes what follows.
func repair(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("journal: %w", err)
	}
	if info.Size() < int64(len(header)) {
		if err := f.Truncate(0); err != nil {
			return 0, fmt.Errorf("journal: %w", err)
		}
		if _, err := f.WriteAt([]byte(header), 0); err != nil {
			return 0, fmt.Errorf("journal: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("journal: %w", err)
		}
		return int64(len(header)), syncFolder(filepath.Dir(f.Name()))
	}
	end, err := scan(f, func(string, string, []byte, Ref) error { return nil })
	if err != nil {
		return 0, err
	}
	if end < info.Size() {
		if err := f.Truncate(end); err != nil {
			return 0, fmt.Errorf("journal: %w", err)
		}
	}
	return end, nil
}

// scan calls fn for every record of every whole batch, in order, and returns
// where the last whole batch ends. A broken batch that is followed by another
// one is damage, not an interrupted write, and is an error.
func scan(f *os.File, fn func(kind, id string, value []byte, ref Ref) error) (int64, error) {
	if _, err := f.Seek(0, 0); err != nil {
		return 0, fmt.Errorf("journal: %w", err)
	}
	r := bufio.NewReaderSize(f, 1<<16)
	first, err := r.ReadString('\n')
	if err != nil || first != header {
		return 0, fmt.Errorf("journal: %s is not a journal of the simulator", f.Name())
	}
	end := int64(len(header))
	var batch []byte
	broken := false
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return end, nil // an unfinished line belongs to no whole batch
		}
		if line[0] != '#' {
			batch = append(batch, line...)
			continue
		}
		if broken {
			return 0, fmt.Errorf("journal: %s is damaged after byte %d", f.Name(), end)
		}
		want := appendCommit(batch)[len(batch):]
		if string(want) != string(line) {
			broken = true
			continue
		}
		if err := eachRecord(batch, end, fn); err != nil {
			return 0, err
		}
		end += int64(len(batch) + len(line))
		batch = batch[:0]
	}
}
