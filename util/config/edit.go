package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Set changes one value in the text of a config.yaml; comments, order and the
// rest stay as they are. path is only named in errors.
//
// A value that no config can have is refused (*protocol.Error, code invalid); what
// merely is missing yet beside it is returned as problems, so that a provider or a
// model can be written field by field.
func Set(src []byte, path string, k Key, value any, e env.Env) (text []byte, missing []protocol.Problem, err error) {
	text, err = yamldoc.Set(src, k.Path, value, yamldoc.Bounds{})
	if err != nil {
		return nil, nil, explainEdit(err, src, path, k)
	}
	missing, err = judge(src, text, path, e)
	return text, missing, err
}

// Unset takes one value out of the text of a config.yaml; all else stays as it is. A
// config that cannot be used without it is refused. Errors are *protocol.Error.
func Unset(src []byte, path string, k Key, e env.Env) ([]byte, error) {
	text, err := yamldoc.Unset(src, k.Path, yamldoc.Bounds{})
	if errors.Is(err, yamldoc.ErrNoKey) {
		return nil, &protocol.Error{Code: protocol.CodeNotFound, Message: "key not found: " + k.String(), Err: err, Hints: []string{"uwf config list"}}
	}
	if err != nil {
		return nil, explainEdit(err, src, path, k)
	}
	missing, err := judge(src, text, path, e)
	if err == nil && len(missing) > 0 {
		err = &protocol.Error{Code: protocol.CodeInvalid, Message: "without it " + missing[0].Message, Err: &InvalidError{Problems: missing}}
	}
	return text, err
}

// explainEdit says why a text could not be changed.
func explainEdit(err error, src []byte, path string, k Key) error {
	var bad *yamldoc.Error
	switch {
	case errors.As(err, &bad):
		r := report{path: path, src: src}
		r.addYAML(err)
		return r.err()
	case errors.Is(err, yamldoc.ErrNoMapping):
		return &protocol.Error{
			Code: protocol.CodeInvalid, Message: fmt.Sprintf("%s cannot be set: in %s %v", k, path, err), Err: err,
			Hints: []string{"uwf config list"},
		}
	case errors.Is(err, yamldoc.ErrUneditable):
		return &protocol.Error{
			Code: protocol.CodeFailed, Message: fmt.Sprintf("%s in %s %v", k, path, err), Err: err,
			Hints: []string{"change it with an editor; uwf config list shows what is in force"},
		}
	}
	return err
}

// judge holds a changed config against the rules. What was wrong before is not
// held against the change.
func judge(before, after []byte, path string, e env.Env) (missing []protocol.Problem, err error) {
	known := map[string]bool{}
	for _, p := range problems(before, path, e) {
		known[p.Message] = true
	}
	var wrong []protocol.Problem
	for _, p := range problems(after, path, e) {
		switch {
		case known[p.Message]:
		case strings.HasSuffix(p.Message, missingWords):
			missing = append(missing, p)
		default:
			wrong = append(wrong, p)
		}
	}
	if len(wrong) == 0 {
		return missing, nil
	}
	bad := &protocol.Error{Code: protocol.CodeInvalid, Message: wrong[0].Message, Err: &InvalidError{Problems: wrong}}
	if wrong[0].Remedy != "" {
		bad.Hints = []string{wrong[0].Remedy}
	}
	return nil, bad
}

// problems are all that is wrong in a config: also what would only be warned of, for
// a name that is typed now is to be right.
func problems(src []byte, path string, e env.Env) []protocol.Problem {
	_, r := read(src, path, e)
	return append(r.problems, r.warnings...)
}
