package cliagent

import "os"

// Windows has no signals: a program gets a break event and is then killed.
var terminate = os.Kill
