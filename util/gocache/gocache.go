// Package gocache is a GOCACHEPROG: it serves the go command's build cache from two directories. A sandbox's own
// cache begins empty, and the standard library takes longer to compile than most tests take to run. So while that
// cache is new, it is filled from the user's.
//
// Both directories have the format of GOCACHE. Anything else in them is a miss.
package gocache

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/united-workforce/uwf/util/safeopen"
)

// Argument is uwf-box's argument that runs [Serve], before the path of the user's cache.
const Argument = "go-cache"

// request is a message of the go command. A put with BodySize > 0 is followed by its content as another value.
type request struct {
	ID       int64
	Command  string
	ActionID []byte
	OutputID []byte
	BodySize int64
}

type response struct {
	ID            int64
	Err           string     `json:",omitempty"`
	KnownCommands []string   `json:",omitempty"`
	Miss          bool       `json:",omitempty"`
	OutputID      []byte     `json:",omitempty"`
	Size          int64      `json:",omitempty"`
	Time          *time.Time `json:",omitempty"`
	DiskPath      string     `json:",omitempty"`
}

// Serve answers the go command until it closes the cache. It writes only to the directory own.
func Serve(in io.Reader, out io.Writer, own, users string, now func() time.Time) error {
	c := cache{own: own, users: users, now: now}
	from, to := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	if err := to.Encode(response{KnownCommands: []string{"get", "put", "close"}}); err != nil {
		return err
	}
	for {
		var q request
		if err := from.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r := response{}
		switch q.Command {
		case "get":
			r = c.get(q.ActionID)
		case "put":
			var body []byte
			if q.BodySize > 0 {
				if err := from.Decode(&body); err != nil {
					return err
				}
			}
			r = c.put(q, body)
		}
		r.ID = q.ID
		if err := to.Encode(r); err != nil || q.Command == "close" {
			return err
		}
	}
}

type cache struct {
	own, users string
	now        func() time.Time
}

func (c cache) get(action []byte) response {
	if r, ok := find(c.own, action); ok {
		return r
	}
	if r, ok := find(c.users, action); ok {
		content, err := safeopen.ReadFile(r.DiskPath, r.Size, safeopen.NoFollow)
		if sum := sha256.Sum256(content); err == nil && bytes.Equal(sum[:], r.OutputID) {
			if r.DiskPath, err = c.add(action, r.OutputID, content, *r.Time); err == nil {
				return r
			}
		}
	}
	return response{Miss: true}
}

func (c cache) put(q request, body []byte) response {
	path, err := c.add(q.ActionID, q.OutputID, body, c.now())
	if err != nil {
		return response{Err: err.Error()}
	}
	return response{DiskPath: path}
}

// entry is the format of a file that maps an action to its output: ids, size, and time in nanoseconds.
const entry = "v1 %x %x %20d %20d\n"

const maxEntry = 1 << 10 // an entry has 175 bytes

// name returns the path of an entry ("a") or of an output ("d").
func name(dir string, id []byte, kind string) string {
	text := hex.EncodeToString(id)
	return filepath.Join(dir, text[:2], text+"-"+kind)
}

// find reads the entry of an action, if its output is there.
func find(dir string, action []byte) (r response, ok bool) {
	if len(action) != sha256.Size {
		return r, false
	}
	text, err := safeopen.ReadFile(name(dir, action, "a"), maxEntry, safeopen.NoFollow)
	fields := bytes.Fields(text)
	if err != nil || len(fields) != 5 {
		return r, false
	}
	output, notHex := hex.DecodeString(string(fields[2]))
	size, noSize := strconv.ParseInt(string(fields[3]), 10, 64)
	nanoseconds, noTime := strconv.ParseInt(string(fields[4]), 10, 64)
	if errors.Join(notHex, noSize, noTime) != nil || string(text) != fmt.Sprintf(entry, action, output, size, nanoseconds) ||
		len(output) != sha256.Size {
		return r, false
	}
	path, at := name(dir, output, "d"), time.Unix(0, nanoseconds)
	return response{OutputID: output, Size: size, Time: &at, DiskPath: path}, holds(path, size)
}

// holds reports whether a path is a file of this size.
func holds(path string, size int64) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

// add stores an output and then its entry.
func (c cache) add(action, output, content []byte, at time.Time) (path string, err error) {
	if len(action) != sha256.Size || len(output) != sha256.Size {
		return "", errors.New("go cache: invalid id")
	}
	path = name(c.own, output, "d")
	if !holds(path, int64(len(content))) {
		if err := write(path, content); err != nil {
			return "", err
		}
	}
	return path, write(name(c.own, action, "a"), fmt.Appendf(nil, entry, action, output, len(content), at.UnixNano()))
}

// write writes a file as a whole, because several go commands share a cache.
func write(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "new-*-d") // the go command removes one that a kill leaves behind
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error counts
	}
	return err
}
