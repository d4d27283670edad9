// Package shellguard rejects shell commands that an agent must not run.
package shellguard

import (
	"errors"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

// ErrEngine is returned by [RefuseEngine].
var ErrEngine = errors.New("agents cannot run steps: the engine reads your answer and selects the next role; end " +
	"your turn instead (read-only uwf commands are fine)")

var (
	quoted = lazyregexp.New(`'[^']*'|"[^"]*"`)
	steps  = lazyregexp.New(`(^|[\s;&|(/` + "`" + `])uwf(\.exe)?(\s+-\S+)*\s+(--(home|store)\s+\S+\s+)?(run|thread\s+(step|exec|resume|retry|poke))(\s|$)`)
)

// RefuseEngine returns [ErrEngine] if a shell command line would run a step of a thread ("uwf run", "uwf
// thread step" and similar). Tools must call it, because the engine waits for the agent, so the agent must
// not wait for the engine. It guards against mistakes of a model, not against deliberate evasion.
func RefuseEngine(commandLine string) error {
	if steps().MatchString(quoted().ReplaceAllString(commandLine, "''")) {
		return ErrEngine
	}
	return nil
}
