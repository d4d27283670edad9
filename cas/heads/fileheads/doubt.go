package fileheads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// Facts say that a thread was imported, so losing one must not make a stranger's
// thread one of ours. Of a line that cannot be read nobody knows what it said, so
// each thread that it may be about is in doubt, until a later line says where the
// thread comes from.

// factsRead is what the lines of the facts say together.
type factsRead struct {
	data   []byte // all lines, also those that were passed over
	known  map[string]fields
	doubts map[string]error // by thread: the line that may have been about it
	faults []error          // of lines that cannot be read
	torn   error            // that the last line is torn, and may be about a thread
	lost   error            // that lines, or all of the file, are lost

	number, lines int                    // lines that were read, and how many of them are not empty
	said          map[string]heads.Facts // by thread: what known says, as far as somebody asked
}

// readFacts reads the lines that are about a thread, "" for all of them, and finds
// those of which that cannot be told.
func (x *Heads) readFacts(ctx context.Context, only string) (*factsRead, error) {
	for {
		// First how many lines there must be: an append writes them before their number.
		says, count := x.saysFacts()
		data, err := x.factsText(ctx)
		if err != nil {
			return nil, err
		}
		r, err := x.linesOfFacts(ctx, data, only, acknowledged(says, count))
		if err != nil {
			return r, err
		}
		if lines := countLines(data); says && count < 0 && len(data) == 0 || lines < count {
			if _, now := x.saysFacts(); now != count {
				continue // somebody has just written the file again
			}
			r.lose(lostFacts(x.path(factsFile), lines, count), x.names(ctx))
		}
		x.astray(ctx, r, only)
		return r, ctx.Err()
	}
}

// lose puts all threads in doubt.
func (r *factsRead) lose(why error, standing map[string]bool) {
	r.lost = why
	r.faults = append(r.faults, why)
	r.doubt(nil, standing, why)
}

// acknowledged is how many lines somebody was told of, at most.
func acknowledged(says bool, count int) int {
	switch {
	case !says:
		return 0
	case count < 0:
		return math.MaxInt
	}
	return count
}

// linesOfFacts is [Heads.readFacts] for a text. A torn line behind those that were
// acknowledged says nothing: it would have been, had it been written as a whole.
func (x *Heads) linesOfFacts(ctx context.Context, data []byte, only string, acknowledged int) (*factsRead, error) {
	r := x.readBefore(data, only)
	rest := data[len(r.data):]
	r.data = data
	quoted, err := json.Marshal(only)
	if err != nil {
		return r, err
	}
	var standing map[string]bool // read only if it is needed
	for text := range bytes.Lines(rest) {
		r.number++
		content, whole := bytes.CutSuffix(text, []byte("\n"))
		if whole && !isBlank(content) {
			r.lines++
		}
		if _, sound := sumOf(content); sound && only != "" && !mayBeAbout(content, quoted) {
			continue
		}
		change, err := read(content, whole, parseFacts)
		switch {
		case err == nil:
			r.add(change)
			continue
		case errors.Is(err, errNothing) && (whole || isBlank(content)):
			continue
		case errors.Is(err, errNothing):
			// A kill may have torn it, and then nobody was told of a thread that it
			// is about. One that is here has lost what it said.
			r.torn = invalid(x.path(factsFile), r.number, whyTorn(content))
			if err = r.torn; r.lines >= acknowledged {
				continue
			}
		default:
			err = invalid(x.path(factsFile), r.number, err.Error())
			r.faults = append(r.faults, err)
		}
		if standing == nil {
			standing = x.names(ctx)
		}
		r.doubt(content, standing, err)
	}
	return r, ctx.Err()
}

// mayBeAbout reports whether a sound line may be about a thread, which is quoted. The lines
// that we write begin with their thread; what they say may name many others, such as its
// parent.
func mayBeAbout(line, quoted []byte) bool {
	if bytes.HasPrefix(line, []byte(begin)) {
		return bytes.HasPrefix(line[len(begin)-1:], quoted)
	}
	return bytes.Contains(line, quoted)
}

// whyTorn says what a torn line looks like.
func whyTorn(content []byte) string {
	if len(withoutZeros(content)) == 0 {
		return "it is zeros to its end, as a power cut or a failing disk leaves a file"
	}
	return "it ends before it is whole"
}

// lostFacts is the error for a file that has fewer lines than there were, or none.
func lostFacts(path string, lines, count int) error {
	message := path + " is lost, which says where threads come from: restore it from a backup"
	if lines > 0 {
		message = fmt.Sprintf("%s has %d lines and had %d, so what says where a thread comes from may be lost: restore it from a backup; "+
			"if you took lines out, write the number of those that are left into the comment of threads.yaml", path, lines, count)
	}
	return &protocol.Error{Code: protocol.CodeInvalid, Message: message}
}

// add adds a line that can be read.
func (r *factsRead) add(change factsChange) {
	known := maps.Clone(r.known[change.thread]) // those of an earlier look stay
	if known == nil {
		known = fields{}
	}
	known.merge(change.fields)
	r.known[change.thread] = known
	delete(r.said, change.thread)
	if change.fields["imported"] != nil {
		delete(r.doubts, change.thread)
	}
}

// doubt notes the threads that a line may be about: the one that it names, if there
// is such a thread; else, since the id may be what is damaged, all. Of one that is
// torn only what is missing is not known.
func (r *factsRead) doubt(line []byte, standing map[string]bool, why error) {
	id, named := strings.CutPrefix(string(withoutZeros(line)), begin)
	id = id[:min(len(id), threadid.Len)]
	if named && (standing[id] || why != r.torn && threadid.Valid(id)) {
		r.doubts[id] = why
	}
	if named && standing[id] {
		return
	}
	for thread := range standing {
		if why != r.torn || !named || strings.HasPrefix(thread, id) {
			r.doubts[thread] = why
		}
	}
}

// names are the threads of this home, active and ended, as far as they can be read.
func (x *Heads) names(ctx context.Context) map[string]bool {
	all, _ := heads.Standings(ctx, x)
	names := make(map[string]bool, len(all))
	for thread := range all {
		names[thread] = true
	}
	return names
}

// of returns what is known of a thread.
func (r *factsRead) of(thread string) (heads.Facts, error) {
	f, read := r.said[thread]
	if !read {
		var err error
		if f, err = r.known[thread].facts(); err != nil {
			return f, err
		}
		r.said[thread] = f
	}
	f.Doubt = r.doubts[thread]
	return f, nil
}

// mark adds to what is known what [factsRead.marks] says.
func (r *factsRead) mark() error {
	marks, err := r.marks()
	if err != nil {
		return err
	}
	for thread, facts := range marks {
		imported, err := json.Marshal(facts.Imported)
		if err != nil {
			return err
		}
		r.add(factsChange{thread, fields{"imported": imported}})
	}
	return nil
}

// marks is what is to be written of the threads in doubt before the lines that may be
// about them go: nobody has said yet where they may work.
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
