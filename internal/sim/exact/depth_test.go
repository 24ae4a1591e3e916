package exact

// defaultSeeds is how many a test run simulates.
const defaultSeeds = 250
