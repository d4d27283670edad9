package secret_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/secret"
)

func TestLooks(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a1B2", 12)
	for text, want := range map[string]string{
		"STRIPE_KEY=sk_live_" + long:                            "sk_live_…",
		"Authorization: Bearer sk-proj-" + long:                 "sk-proj-…",
		"the token ghp_" + long + " of CI":                      "ghp_a1B2…",
		"x\x00AKIAABCDEFGHIJKLMNOP\x00":                         "AKIAABCD…",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl":             "-----BEG…",
		"export DB_PASSWORD='hunter2-Tr0ub4dor&3'":              "DB_PASSWORD",
		"HOME=/root\nDEPLOY_TOKEN=4f9c8e7a6b5d4c3b2a19":         "DEPLOY_TOKEN",
		"DB_PASSWORD=changeme":                                  "",
		"API_KEY=os.environ":                                    "",
		"MAX_TOKENS=100000 PATH=/usr/bin:/bin":                  "",
		"task-1234567890abcdefghijklmn and sk-learn":            "",
		"commit 4f9c8e7a6b5d4c3b2a19080706050403 of the branch": "",
	} {
		require.Equal(t, want, secret.NewLooks().In([]byte(text)), text)
	}
}
