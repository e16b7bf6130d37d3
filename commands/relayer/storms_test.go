package relayer

// stormsShort is how many histories are tried each time.
const stormsShort = 12
