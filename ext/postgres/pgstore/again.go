package pgstore

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/united-workforce/uwf/util/plaintext"
)

// attempt is the time limit of one try, because a dead connection doesn't end by itself.
const attempt = 2 * time.Minute

// try repeats do while the connection is lost, until the patience is exhausted. do must be idempotent.
func (db *DB) try(ctx context.Context, do func(context.Context) error) error {
	var over <-chan time.Time
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := once(ctx, do)
		if err == nil || !lost(err) || ctx.Err() != nil {
			return db.shown(err)
		}
		if over == nil {
			over = time.After(db.patience)
		}
		select {
		case <-ctx.Done():
		case <-over:
			return fmt.Errorf("the database does not answer: %w", db.shown(err))
		case <-time.After(wait/2 + time.Duration(rand32())*wait/(1<<32)):
		}
	}
}

func once(ctx context.Context, do func(context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, attempt)
	defer stop()
	return do(ctx)
}

// lost reports whether it is unknown if a statement was executed, or whether it failed because of a temporary
// state of the server.
func lost(err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		switch pgErr.Code {
		case "57P01", "57P02", "57P03", // shutting down, crashed, starting up
			"53300",          // too many connections
			"40001", "40P01": // conflicts with other transactions
			return true
		}
		return strings.HasPrefix(pgErr.Code, "08")
	}
	var unknown *net.DNSError
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &unknown) && unknown.IsNotFound || errors.As(err, &certificate) {
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err)
}

// shown returns err with the password removed from its message.
func (db *DB) shown(err error) error {
	if err == nil || !db.secrets.Holds(err.Error()) && plaintext.Line(err.Error()) == err.Error() {
		return err
	}
	return &maskedError{text: plaintext.Line(db.secrets.Hide(err.Error())), err: err}
}

// maskedError has a shorter message than the error that it wraps.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

// code returns the server's code of an error, or "" for other errors.
func code(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

// tooHigh reports whether a number doesn't fit in its column.
func tooHigh(err error) bool { return code(err) == "22003" }

// taken reports whether a key already exists.
func taken(err error) bool { return code(err) == "23505" }

// number returns a random number that identifies a change if its response is lost.
func number() pgtype.UUID {
	n := pgtype.UUID{Valid: true}
	_, _ = rand.Read(n.Bytes[:]) // it never fails
	return n
}

func rand32() uint32 {
	n := number()
	return binary.BigEndian.Uint32(n.Bytes[:])
}
