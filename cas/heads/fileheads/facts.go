package fileheads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/threadid"
)

// Facts record that a thread was imported, so losing them must not turn an imported thread into a local one.
// Three conditions put threads in doubt until a later line states their origin: an unreadable line, for each
// thread that it might be about; a lost file, or the loss of its end, for all threads; and a wrong checksum
// of threads.yaml, in a home with imported threads, for each active thread without facts, whose id might be
// the damaged one.

// maxFacts bounds a line, in bytes.
const maxFacts = 1 << 20

// privateFile is the mode of a file that contains the user's paths.
const privateFile = 0o600

// factsRead is the combined content of the lines.
type factsRead struct {
	data     []byte
	number   int               // number of the last line
	complete int64             // bytes of complete lines
	known    map[string]fields // by thread
	doubts   map[string]error  // by thread: why its origin is unknown
	faults   []error
	lost     bool                   // the file, or its end, is lost
	decoded  map[string]heads.Facts // decoded entries of known
}

// Facts returns the facts of an active or ended thread. Neither having none nor an unreadable line is an
// error: the latter is reported as Doubt.
func (x *Heads) Facts(ctx context.Context, thread string) (heads.Facts, error) {
	if x.Now != nil {
		if all, err := x.AllFacts(ctx); err == nil {
			return all[thread], nil
		}
	}
	r, err := x.readFacts(ctx, thread)
	if err != nil {
		return heads.Facts{}, err
	}
	return r.of(thread)
}

// AllFacts returns the facts of all threads; most have no entry. If some lines are unreadable, it returns an
// error together with the others. The caller must not change the map.
func (x *Heads) AllFacts(ctx context.Context) (map[string]heads.Facts, error) {
	return x.facts.of(x, func() (map[string]heads.Facts, error) { return x.allFacts(ctx) }, factsFile, threadsFile)
}

func (x *Heads) allFacts(ctx context.Context) (map[string]heads.Facts, error) {
	r, err := x.readFacts(ctx, "")
	if err != nil {
		return nil, err
	}
	all := make(map[string]heads.Facts, len(r.known))
	for _, threads := range []iter.Seq[string]{maps.Keys(r.known), maps.Keys(r.doubts)} {
		for thread := range threads {
			if all[thread], err = r.of(thread); err != nil {
				return all, err // can't happen, because each line is readable
			}
		}
	}
	x.cacheFacts(r)
	return all, errors.Join(r.faults...)
}

// maxCached bounds the lines of facts that are cached for the next read of all facts, in bytes.
const maxCached = 4 << 20

// cacheFacts caches lines that leave nothing in doubt. A run with many children reads the facts of all threads
// in each step, and finds the same lines or more.
func (x *Heads) cacheFacts(r *factsRead) {
	if len(r.data) <= maxCached && bytes.HasSuffix(r.data, []byte("\n")) && len(r.faults)+len(r.doubts) == 0 {
		x.soundFacts.Store(r)
	}
}

// readFacts reads the lines about a thread, "" for all threads, and determines which are in doubt.
func (x *Heads) readFacts(ctx context.Context, only string) (*factsRead, error) {
	r, err := x.readLines(ctx, only)
	if err != nil || only != "" && r.known[only] != nil && x.recordedSize() <= r.complete {
		return r, err
	}
	var threads *table
	mayBeDamaged := false
	for range 2 { // retry, because the facts might have been rewritten between reading the two files
		if threads, err = x.look(ctx); err != nil { // rarely needed
			return r, ctx.Err() // the reader of the threads reports it
		}
		if mayBeDamaged = threads.wrong != "" && len(threads.bad) == 0; !mayBeDamaged && threads.minFacts <= r.complete {
			return r, nil
		}
		// Read everything again: facts are written before their thread, and before threads.yaml records their
		// number.
		if r, err = x.readLines(ctx, ""); err != nil {
			return r, err
		}
	}
	existing := x.names(ctx)
	if r.lost = threads.minFacts > r.complete; r.lost {
		what := " is missing"
		if r.complete > 0 {
			what = fmt.Sprintf(" is truncated (%d of %d bytes)", threads.minFacts-r.complete, threads.minFacts)
		}
		why := &protocol.Error{Code: protocol.CodeInvalid, Message: x.path(factsFile) + what + "; restore it from a backup: it records where threads come from"}
		r.faults = append(r.faults, why)
		r.doubt(nil, existing, why)
		maps.DeleteFunc(r.doubts, func(id string, err error) bool {
			return err == error(why) && //nolint:errorlint // an imported thread stays one without the lost lines
				r.known[id]["imported"] != nil
		})
	}
	for _, f := range r.known {
		if !mayBeDamaged || f["imported"] == nil {
			continue
		}
		r.doubtUnknown(threads, invalid(threads.path, 1, "checksum mismatch, and the home has imported threads"))
		break
	}
	return r, nil
}

// doubtUnknown puts active threads without facts in doubt.
func (r *factsRead) doubtUnknown(threads *table, why error) {
	for thread := range threads.all {
		if r.known[thread] == nil {
			r.doubts[thread] = why
		}
	}
}

// readLines is [Heads.readFacts] for the file alone.
func (x *Heads) readLines(ctx context.Context, only string) (*factsRead, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	data, err := x.readFile(factsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	quoted, err := json.Marshal(only)
	if err != nil {
		return nil, err
	}
	r := &factsRead{data: data, known: map[string]fields{}, doubts: map[string]error{}, decoded: map[string]heads.Facts{}}
	if kept := x.soundFacts.Load(); only == "" && kept != nil && bytes.HasPrefix(data, kept.data) {
		r.number, r.known, r.decoded = kept.number, maps.Clone(kept.known), maps.Clone(kept.decoded)
		r.complete = int64(len(kept.data))
		data = data[len(kept.data):]
	}
	var existing map[string]bool // read only if needed
	for text := range bytes.Lines(data) {
		r.number++
		content, whole := bytes.CutSuffix(text, []byte("\n"))
		if _, sound := sumOf(content); sound && only != "" && !mayContain(content, quoted) {
			r.complete += int64(len(content) + len("\n"))
			continue
		}
		change, err := readLine(content, whole, parseFacts)
		switch {
		case whole:
			r.complete += int64(len(text))
		case !errors.Is(err, errNothing): // at most its end is lost
			r.complete += int64(len(withoutZeros(content)) + len("\n"))
		}
		switch {
		case err == nil:
			r.add(change)
		case !errors.Is(err, errNothing):
			if existing == nil {
				existing = x.names(ctx)
			}
			err = invalid(x.path(factsFile), r.number, err.Error())
			r.faults = append(r.faults, err)
			r.doubt(content, existing, err)
		}
	}
	return r, ctx.Err()
}

// mayContain reports whether a valid line might be about a thread, given as a quoted id. Lines written by uwf
// start with their thread; their content can mention others, such as its parent.
func mayContain(line, quoted []byte) bool {
	if bytes.HasPrefix(line, []byte(begin)) {
		return bytes.HasPrefix(line[len(begin)-1:], quoted)
	}
	return bytes.Contains(line, quoted)
}

// add adds a readable line.
func (r *factsRead) add(change factsChange) {
	known := maps.Clone(r.known[change.thread]) // earlier results keep theirs
	if known == nil {
		known = fields{}
	}
	maps.Copy(known, change.fields)
	r.known[change.thread] = known
	delete(r.decoded, change.thread)
	if change.fields["imported"] != nil {
		delete(r.doubts, change.thread)
	}
}

// doubt determines the threads that a line might be about. If it starts with a known thread, that one and
// those that it mentions, because a damaged line end joins two lines; otherwise all.
func (r *factsRead) doubt(line []byte, existing map[string]bool, why error) {
	id, _ := strings.CutPrefix(string(line), begin)
	id = id[:min(len(id), threadid.Len)]
	sure := existing[id] && !bytes.Contains(line, []byte{0}) // zeros might have been many lines
	for thread := range existing {
		if !sure || bytes.Contains(line, []byte(thread)) {
			r.doubts[thread] = why
		}
	}
	if threadid.Valid(id) {
		r.doubts[id] = why
	}
}

// names returns the readable threads of this home, active and ended.
func (x *Heads) names(ctx context.Context) map[string]bool {
	all, _ := heads.ThreadStates(ctx, x)
	names := make(map[string]bool, len(all))
	for thread := range all {
		names[thread] = true
	}
	return names
}

// of returns the facts of a thread.
func (r *factsRead) of(thread string) (heads.Facts, error) {
	f, done := r.decoded[thread]
	if !done {
		var err error
		if f, err = r.known[thread].facts(); err != nil {
			return f, err
		}
		r.decoded[thread] = f
	}
	f.Doubt = r.doubts[thread]
	return f, nil
}

// marks returns the facts that must be written about threads in doubt before the reason for it disappears: they
// count as imported, and no user has confirmed where they can work.
func (r *factsRead) marks() (map[string]heads.Facts, error) {
	marks := map[string]heads.Facts{}
	for thread := range r.doubts {
		known, err := r.of(thread)
		if err != nil {
			return nil, err
		}
		mark := heads.Imported{}
		if known.Imported != nil {
			mark = *known.Imported
		}
		mark.Confirmed, mark.Lost = false, true
		marks[thread] = heads.Facts{Imported: &mark}
	}
	return marks, nil
}

// SetFacts updates the facts of a thread: each field set in change replaces the previous value.
func (x *Heads) SetFacts(ctx context.Context, thread string, change heads.Facts) error {
	return x.changeThreads(ctx, func(f *table) error {
		return x.appendFacts(ctx, f, map[string]heads.Facts{thread: change})
	})
}

// appendFacts durably appends lines, under the lock of the threads; the caller then saves the table. If the
// file was lost, it first writes which threads are in doubt. In that case, or while the table's checksum is
// wrong, a thread gets a line even without facts.
func (x *Heads) appendFacts(ctx context.Context, f *table, changes map[string]heads.Facts) error {
	size, err := x.factsSize(f.minFacts)
	if err != nil {
		return err
	}
	lost := f.minFacts > size
	text, err := factsLines(changes, lost || f.wrong != "")
	if len(text) == 0 || err != nil {
		return err
	}
	if lost {
		marks, err := x.marks(ctx)
		if err != nil {
			return err
		}
		text = append(marks, text...)
	}
	return x.appendFactsText(f, text)
}

func (x *Heads) appendFactsText(f *table, text []byte) error {
	start, err := x.repairTail(factsFile, isFacts)
	if err != nil {
		return err
	}
	f.minFacts = 1 // there are facts; saveThreads records their size
	return durable.AppendFile(x.fsys, x.path(factsFile), append(start, text...), privateFile)
}

// marks returns the lines of [factsRead.marks].
func (x *Heads) marks(ctx context.Context) ([]byte, error) {
	r, err := x.readFacts(ctx, "")
	if err != nil {
		return nil, err
	}
	marks, err := r.marks()
	if err != nil {
		return nil, err
	}
	return factsLines(marks, false)
}

// recordedSize returns the minimum size of the file according to threads.yaml; 0 if unknown.
func (x *Heads) recordedSize() int64 {
	f, err := safeopen.OpenMax(x.path(threadsFile), maxFile, safeopen.Follow)
	if err != nil {
		return 0 // reported by the reader
	}
	defer func() { _ = f.Close() }() // nothing was written
	head := make([]byte, len(byteOrderMark)+sumLineMax)
	n, _ := f.ReadAt(head, 0)
	first, _ := parseSum(bytes.TrimPrefix(head[:n], []byte(byteOrderMark)))
	return first.minFacts
}

// factsSize returns the size of facts.jsonl if its last line is complete, or known if a kill tore the lines after
// that. It returns 0 if the known bytes are not complete lines, because the end was lost.
func (x *Heads) factsSize(known int64) (int64, error) {
	f, err := safeopen.OpenMax(x.path(factsFile), maxFile, safeopen.Follow)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	last := make([]byte, 1)
	for _, size := range []int64{info.Size(), known} {
		if size == 0 || size > info.Size() {
			continue
		}
		if _, err := f.ReadAt(last, size-1); err != nil {
			return 0, err
		}
		switch {
		case last[0] == '\n' || size == 1: // for 1, see appendFactsText
			return size, nil
		case last[0] == '}' && size == known-1: // only the end of its last line is lost
			return known, nil
		}
	}
	return 0, nil
}

// rewriteFacts writes one line for each thread except those in gone, under the lock of the threads.
// Unreadable lines stay.
func (x *Heads) rewriteFacts(ctx context.Context, f *table, gone map[string]heads.Ended) error {
	r, err := x.readFacts(ctx, "")
	if err != nil {
		return err
	}
	_, text := sortLines(r.data, parseFacts)
	if r.lost {
		marks, err := x.marks(ctx)
		if err != nil {
			return err
		}
		text = append(text, marks...)
	}
	var good []byte
	for _, thread := range slices.Sorted(maps.Keys(r.known)) {
		known := maps.Clone(r.known[thread])
		maps.DeleteFunc(known, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
		if _, is := gone[thread]; is || len(known) == 0 && f.wrong == "" {
			continue
		}
		line, err := known.line(thread)
		if err != nil {
			return err
		}
		good = append(good, line...)
	}
	if text = append(good, text...); bytes.Equal(text, r.data) {
		return nil
	}
	return x.replaceFacts(f, text)
}

// replaceFacts rewrites the file, under the lock of the threads. threads.yaml never records more than its
// actual length.
func (x *Heads) replaceFacts(f *table, text []byte) error {
	if f.minFacts > int64(len(text)) {
		f.minFacts = int64(len(text))
		if err := x.save(f); err != nil {
			return err
		}
	}
	if err := durable.WriteFile(x.fsys, x.path(factsFile), text, privateFile); err != nil {
		return err
	}
	f.minFacts = int64(len(text))
	return x.save(f)
}

// factsLines formats changes as lines; empty ones only if withEmpty is set.
func factsLines(changes map[string]heads.Facts, withEmpty bool) (text []byte, err error) {
	for _, thread := range slices.Sorted(maps.Keys(changes)) {
		data, err := json.Marshal(changes[thread])
		if err != nil {
			return nil, fmt.Errorf("facts of thread %s: %w", thread, err)
		}
		var f fields
		if err := json.Unmarshal(data, &f); err != nil {
			return nil, err
		}
		if len(f) == 0 && !withEmpty {
			continue
		}
		line, err := f.line(thread)
		if err != nil {
			return nil, err
		}
		text = append(text, line...)
	}
	return text, nil
}

func isFacts(line []byte) error {
	_, err := parseFacts(line)
	return err
}

// fields contains the fields of a line except the thread.
type fields map[string]json.RawMessage

// facts decodes the fields known to this program, one at a time: for the whole struct, encoding/json would first
// examine all types in it, which takes longer than the rest.
func (f fields) facts() (heads.Facts, error) {
	var out heads.Facts
	into := reflect.ValueOf(&out).Elem()
	for i := range into.NumField() {
		name, _, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
		if name == "-" || f[name] == nil {
			continue
		}
		if err := json.Unmarshal(f[name], into.Field(i).Addr().Interface()); err != nil {
			return out, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

// line formats fields as a line; a rewrite omits null.
func (f fields) line(thread string) ([]byte, error) {
	name, err := json.Marshal(thread)
	if err != nil {
		return nil, err
	}
	line := append([]byte(`{"thread":`), name...)
	for _, key := range slices.Sorted(maps.Keys(f)) {
		quoted, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		line = append(append(append(append(line, ','), quoted...), ':'), f[key]...)
	}
	if line = summed(append(line, '}')); len(line) > maxFacts {
		return nil, fmt.Errorf("facts of thread %s: %d bytes are too many", thread, len(line))
	}
	return line, nil
}

// factsChange is one line.
type factsChange struct {
	thread string
	fields fields
}

// parseFacts parses a line. Its known fields must have the right types.
func parseFacts(line []byte) (factsChange, error) {
	if isBlank(line) {
		return factsChange{}, errNothing
	}
	if len(line) > maxFacts {
		return factsChange{}, fmt.Errorf("%d bytes are too many for a line of facts", len(line))
	}
	var f fields
	if err := json.Unmarshal(line, &f); err != nil {
		return factsChange{}, fmt.Errorf("not a line of facts: %w", err)
	}
	var c factsChange
	if err := json.Unmarshal(f["thread"], &c.thread); err != nil || c.thread == "" {
		return factsChange{}, errors.New("no thread id")
	}
	if problem := threadProblem(c.thread); problem != "" {
		return factsChange{}, errors.New(problem)
	}
	if err := checkSum(line); err != nil {
		return factsChange{}, err
	}
	delete(f, "thread")
	if _, sound := sumOf(line); sound {
		delete(f, checkKey)
	}
	c.fields = f
	if _, err := f.facts(); err != nil {
		return factsChange{}, fmt.Errorf("not a line of facts: %w", err)
	}
	return c, nil
}
