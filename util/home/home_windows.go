package home

// userDirVar is the variable that names the user's own directory.
const userDirVar = "USERPROFILE"
