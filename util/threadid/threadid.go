// Package threadid makes and reads the ids of threads. New ones are standard
// ULIDs (oklog/ulid); the original's are ULIDs whose 128 bits are aligned to
// the left, so their time is read another way. Ids are never compared as
// strings to find the newest: compare their times.
package threadid

import (
	"io"
	"time"
)

// New returns a fresh id.
func New(now time.Time, rand io.Reader) (string, error) { panic("unwritten") }

// Parse returns the canonical form of a full id as a person types it.
func Parse(s string) (string, error) { panic("unwritten") }

// Time tells when an id was made, for ids of both kinds. An id is the
// original's if read as a standard ULID it lies beyond now plus a year... (see the rule in the code).
func Time(id string) (time.Time, error) { panic("unwritten") }
