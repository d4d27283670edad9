package box

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gocache"
	"github.com/united-workforce/uwf/util/proc/plan"
)

// warmTime is how long a new build cache is filled from the user's. After that the go command uses its cache alone,
// which is faster, and removes what is old from it.
const warmTime = time.Hour

// warm lets the go command take what is missing in a new build cache from the user's. The go command creates README
// with the cache.
func (b *builder) warm(r Request, box string) {
	inside, user := env.Env{Environ: b.plan.Env}, env.Env{Environ: r.Environ}
	own, users := inside.Get("GOCACHE"), user.Get("GOCACHE")
	if users == "" {
		users = user.Get("XDG_CACHE_HOME")
		if users == "" {
			users = filepath.Join(r.Home, ".cache")
		}
		users = filepath.Join(users, "go-build")
	}
	if own == "" || own == users || inside.Get("GOCACHEPROG") != "" || !isReal(users) || anyBelow(r.Off.Denied(), users) ||
		strings.ContainsAny(box+users, " \t\n'\"") {
		return
	}
	if info, err := os.Stat(filepath.Join(own, "README")); err == nil && r.Now.Sub(info.ModTime()) > warmTime {
		return
	}
	b.add(plan.Mount{Path: users, Kind: plan.Show, Missing: true})
	b.find(box)
	b.plan.Env = append(b.plan.Env, "GOCACHEPROG="+box+" "+gocache.Argument+" "+users)
}
