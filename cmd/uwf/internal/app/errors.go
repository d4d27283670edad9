package app

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

func isRedacted(err error) bool {
	_, redacted := cas.AsRedacted(err)
	return redacted
}

// Classify gives every error a code, and a disk error a remedy.
func Classify(err error) *protocol.Error {
	coded := translate(err)
	if isUnprinted(err) {
		if errors.As(err, new(*protocol.Error)) {
			return coded // this one matters more than that the result could not be printed
		}
		return &protocol.Error{
			Code: protocol.CodeOutputFailed, Message: "done, but the result could not be printed: " + err.Error(), Err: err,
			Hints: []string{"look before you repeat it: uwf thread list --all, or uwf thread show <thread>"},
		}
	}
	var failed *fs.PathError
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return withHint(coded, "free some space, then run the same command again; uwf cas gc removes what no thread uses")
	case errors.Is(err, syscall.EMFILE):
		return withHint(coded, "this is the limit of open files of a process: ulimit -n 1024 raises it, if the system allows that")
	case errors.Is(err, syscall.EFBIG):
		return withHint(coded, "this is the limit of the size of a file: ulimit -f unlimited raises it, if the system allows that")
	case errors.Is(err, syscall.EROFS):
		return withHint(coded, "the file system is read-only: remount it, or choose another home: export UWF_HOME=DIR")
	case errors.Is(err, fs.ErrPermission) && len(coded.Hints) == 0 && errors.As(err, &failed) && failed.Op == "fork/exec":
		return withHint(coded, "may it be started? chmod +x "+plaintext.Word(failed.Path))
	case errors.Is(err, fs.ErrPermission) && len(coded.Hints) == 0:
		return withHint(coded, "whose is it? uwf doctor looks; you may choose another home: export UWF_HOME=DIR")
	}
	return coded
}

// isUnprinted reports whether stdout could not be written to: the command has done its
// work, and must not be repeated for that.
func isUnprinted(err error) bool {
	var failed *fs.PathError
	return errors.As(err, &failed) && failed.Op == "write" && failed.Path == "/dev/stdout" // the name of os.Stdout on every system
}

// withHint is an error with one more hint, the first.
func withHint(e *protocol.Error, hint string) *protocol.Error {
	more := *e
	more.Hints = append([]string{hint}, e.Hints...)
	return &more
}

// translate gives the typed errors of the layers below their code, in one place.
func translate(err error) *protocol.Error {
	if _, ok := errors.AsType[*gc.DamagedError](err); ok {
		return ocascli.Classify(err, CasProgram)
	}
	var coded *protocol.Error
	if errors.As(err, &coded) {
		if coded.Message == err.Error() {
			return coded
		}
		return &protocol.Error{Code: coded.Code, Message: err.Error(), Hints: coded.Hints, Err: err}
	}
	out := &protocol.Error{Code: protocol.CodeFailed, Message: err.Error(), Err: err}
	var (
		corrupt   *cas.CorruptError
		collision *cas.CollisionError
		kind      *cas.TypeError
		problems  *workflow.Problems
		conflict  *heads.ConflictError
		signal    *engine.SignalError
	)
	switch {
	case errors.As(err, &signal):
		out.Code = signal.Code()
	case isRedacted(err):
		return ocascli.Classify(err, CasProgram)
	case errors.As(err, &corrupt):
		out.Code = protocol.CodeCorrupt
		out.Hints = damageHints()
	case errors.As(err, &collision):
		out.Code = protocol.CodeCorrupt
	case errors.Is(err, cas.ErrNotFound):
		out.Code, out.Hints = protocol.CodeCorrupt, damageHints()
	case errors.As(err, &kind):
		out.Code = protocol.CodeInvalid
	case errors.As(err, &problems):
		out.Code = protocol.CodeInvalid
	case errors.As(err, &conflict):
		out.Code = protocol.CodeLocked
	case errors.Is(err, heads.ErrNoThread), errors.Is(err, heads.ErrNoWorkflow):
		out.Code = protocol.CodeNotFound
	default:
		return ocascli.Classify(err, CasProgram)
	}
	return out
}

// damageHints are what to do about a node that is damaged or missing.
func damageHints() []string {
	return []string{
		"restore the node from a backup",
		"uwf cas fsck names the threads that need it; uwf thread diagnose <thread> the last step before it",
	}
}
