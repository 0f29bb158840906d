"""Where the models lie that the scripts of this folder make, and the names of the digits."""

from pathlib import Path

SHIPPED = Path(__file__).parent / "shipped"
DIGITS, QUESTIONS, SENTENCES = SHIPPED / "digits", SHIPPED / "questions", SHIPPED / "sentences"
DIGIT_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
