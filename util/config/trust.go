package config

import (
	"fmt"
	"os"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Distrust returns why what a home says must not be obeyed: config.yaml names
// programs to run, and .env what they get, so who can change them, or the
// directory that they are in, runs programs as the user. As ssh does with its
// files, it refuses what another user owns, except root, or what others can write.
// A group that is the user's own alone does not count, see [careful.OthersWrite]. Where modes say nothing about who
// may write, and of what cannot be looked at, it has nothing to say. The error is
// a *protocol.Error (code invalid).
func Distrust(dirs home.Dirs) error {
	if !modesMatter {
		return nil
	}
	for _, path := range []string{dirs.Home, dirs.Config(), dirs.DotEnv(), dirs.Remotes()} {
		info, err := os.Stat(path)
		if err != nil {
			continue // who needs it will say so
		}
		if owner, foreign := foreignOwner(info); foreign {
			return invalid([]string{fmt.Sprintf("if it is yours: chown -R %d %s", os.Geteuid(), dirs.Home), "or choose another home: export UWF_HOME=DIR"},
				"%s belongs to another user (%d), who could run programs as you", path, owner)
		}
		if careful.OthersWrite(info) && careful.Reachable(path) {
			return &protocol.Error{
				Code:    protocol.CodeInvalid,
				Message: fmt.Sprintf("%s can be changed by others (mode %04o), who could run programs as you", path, info.Mode().Perm()),
				Hints:   []string{"chmod go-w " + plaintext.Word(path), "and look whether somebody has changed it"},
			}
		}
	}
	return nil
}
